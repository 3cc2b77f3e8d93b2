"""The errors of the operations layer, all of them FlowServerErrors. docs/reference/errors.md lists them.

Codes and statuses are those of the service's published error tables (API version 2019-03-15), and for queues those of
the message service (version 2015-06-06).
A class's docstring is its default message; `status` is a hint for the transport that renders it.
Failures of a *step* are values (`machine.messages.Failure`), never one of these.
"""

from typing import ClassVar


class FlowServerError(Exception):
    """The request could not be served."""

    code: ClassVar[str] = "InternalServerError"
    status: ClassVar[int] = 500

    def __init__(self, message: str | None = None) -> None:
        self.message = message or (type(self).__doc__ or "").strip()
        super().__init__(self.message)


class InvalidArgument(FlowServerError):
    """A parameter is not valid."""

    code = "InvalidArgument"
    status = 400


class MissingParameter(FlowServerError):
    """A required parameter is missing."""

    code = "MissingRequiredParams"
    status = 400


class ActionNotSupported(FlowServerError):
    """This action is not supported."""

    code = "ActionNotSupported"
    status = 400


class VersionNotSupported(FlowServerError):
    """Only API version 2019-03-15 is supported."""

    code = "APIVersionNotSupported"
    status = 400


class EntityTooLarge(FlowServerError):
    """The request body is larger than this server accepts."""

    code = "EntityTooLarge"
    status = 400


class PathNotSupported(FlowServerError):
    """The path is not supported, or not with this method."""

    code = "PathNotSupported"
    status = 400


class ExecutionAlreadyExists(FlowServerError):
    """An execution of this name has already ended; choose another name."""

    code = "ExecutionAlreadyExists"
    status = 400


class ExecutionAlreadyCompleted(FlowServerError):
    """The execution has already ended."""

    code = "ExecutionAlreadyCompleted"
    status = 400


class TaskAlreadyCompleted(FlowServerError):
    """The task of this token has already completed."""

    code = "TaskAlreadyCompleted"
    status = 400


class InvalidQueueName(FlowServerError):
    """A queue's name has 1 to 120 letters, digits or hyphens, and begins with a letter or a digit."""

    code = "InvalidQueueName"
    status = 400


class QueueNameLengthError(InvalidQueueName):
    """A queue's name has at most 120 characters."""

    code = "QueueNameLengthError"


class ReceiptHandleError(FlowServerError):
    """This is not a receipt handle of this queue."""

    code = "ReceiptHandleError"
    status = 400


class AccessDenied(FlowServerError):
    """The caller is not allowed to do this."""

    code = "AccessDenied"
    status = 403


class UnknownAccessKey(FlowServerError):
    """The access key is unknown or disabled."""

    code = "InvalidAccessKeyID"
    status = 403


class RequestTimeTooSkewed(FlowServerError):
    """The request's time is more than 15 minutes away from the server's."""

    code = "RequestTimeTooSkewed"
    status = 403


class SignatureNotMatch(FlowServerError):
    """The signature does not match the request."""

    code = "SignatureNotMatch"
    status = 403


class SignatureNonceUsed(FlowServerError):
    """The signature nonce was used before; sign every request anew."""

    code = "SignatureNonceUsed"
    status = 400


class FlowNotExists(FlowServerError):
    """The flow does not exist."""

    code = "FlowNotExists"
    status = 404


class ExecutionNotExists(FlowServerError):
    """The execution does not exist."""

    code = "ExecutionNotExists"
    status = 404


class ScheduleNotExists(FlowServerError):
    """The flow has no schedule of this name."""

    code = "ScheduleNotExists"
    status = 404


class FlowVersionNotExists(FlowServerError):
    """The flow has no such version."""

    code = "FlowVersionNotExists"
    status = 404


class FlowAliasNotExists(FlowServerError):
    """The flow has no such alias."""

    code = "FlowAliasNotExists"
    status = 404


class FunctionNotExists(FlowServerError):
    """The function is not registered."""

    code = "FunctionNotExists"
    status = 404


class ServiceNotFound(FlowServerError):
    """No function of the service is registered."""

    code = "ServiceNotFound"
    status = 404


class FunctionNotFound(FlowServerError):
    """The function to invoke is not registered."""

    code = "FunctionNotFound"
    status = 404


class InvocationNotExists(FlowServerError):
    """The function has no asynchronous invocation of this id."""

    code = "StatefulAsyncInvocationNotFound"
    status = 404


class AsyncConfigNotExists(FlowServerError):
    """The function has no configuration of its asynchronous invocations."""

    code = "AsyncConfigNotExists"
    status = 404


class InvocationExists(FlowServerError):
    """The function has an asynchronous invocation of this id already."""

    code = "StatefulAsyncInvocationAlreadyExists"
    status = 409


class FunctionNotStarted(FlowServerError):
    """The function could not be reached, or its initialization failed, so it did not run."""

    code = "FunctionNotStarted"
    status = 412


class ResourceExhausted(FlowServerError):
    """The function has as many running and waiting calls as it allows."""

    code = "ResourceExhausted"
    status = 429


class QueueNotExist(FlowServerError):
    """The queue does not exist."""

    code = "QueueNotExist"
    status = 404


class MessageNotExist(FlowServerError):
    """There is no such message."""

    code = "MessageNotExist"
    status = 404


class TopicNotExist(FlowServerError):
    """The topic does not exist."""

    code = "TopicNotExist"
    status = 404


class SubscriptionNotExist(FlowServerError):
    """The subscription does not exist."""

    code = "SubscriptionNotExist"
    status = 404


class TopicAlreadyExist(FlowServerError):
    """A topic of this name exists already, with other attributes."""

    code = "TopicAlreadyExist"
    status = 409


class SubscriptionAlreadyExist(FlowServerError):
    """The topic has a subscription of this name already, with other attributes."""

    code = "SubscriptionAlreadyExist"
    status = 409


class QueueAlreadyExist(FlowServerError):
    """A queue of this name exists already, with other attributes."""

    code = "QueueAlreadyExist"
    status = 409


class FlowAlreadyExists(FlowServerError):
    """A flow of this name exists already."""

    code = "FlowAlreadyExists"
    status = 409


class FlowAliasAlreadyExists(FlowServerError):
    """The flow has an alias of that name."""

    code = "FlowAliasAlreadyExists"
    status = 409


class FlowVersionInUse(FlowServerError):
    """An alias or a running execution uses the version."""

    code = "FlowVersionInUse"
    status = 409


class ExecutionInputDiffers(FlowServerError):
    """An execution of this name exists already, with another input."""

    code = "ExecutionAlreadyExists"
    status = 409


class PreconditionFailed(FlowServerError):
    """The resource is not as the request's If-Match or If-None-Match demands."""

    code = "PreconditionFailed"
    status = 412


class ScheduleAlreadyExists(FlowServerError):
    """The flow has a schedule of this name already."""

    code = "ScheduleAlreadyExists"
    status = 409


class ExecutionNotParked(FlowServerError):
    """The execution is not parked, so there is nothing to restart."""

    code = "ExecutionNotParked"
    status = 409


class ExecutionNotRedrivable(FlowServerError):
    """The execution cannot be redriven."""

    code = "ExecutionNotRedrivable"
    status = 409


class InvocationNotParked(FlowServerError):
    """The asynchronous invocation is not parked, so there is nothing to restart."""

    code = "InvocationNotParked"
    status = 409


class TaskInvalidState(FlowServerError):
    """The task cannot take a report at the moment; try again shortly."""

    code = "TaskInvalidState"
    status = 409


class UnsupportedMediaType(FlowServerError):
    """The request's content type is not supported here."""

    code = "UnsupportedMediaType"
    status = 415


class RequestTimeout(FlowServerError):
    """The request did not arrive whole in time."""

    code = "RequestTimeout"
    status = 408


class UrlTooLong(FlowServerError):
    """The URL is longer than this server accepts."""

    code = "UrlTooLong"
    status = 414


class HeadTooLarge(FlowServerError):
    """The request line and headers are larger than this server accepts."""

    code = "HeadTooLarge"
    status = 431


class ResourceThrottled(FlowServerError):
    """The server is busy; try again shortly."""

    code = "ResourceThrottled"
    status = 429


class InternalServerError(FlowServerError):
    """The server failed to handle this request; its log says why."""

    code = "InternalServerError"
    status = 500


class ServiceUnavailable(FlowServerError):
    """The database cannot be reached at the moment; try again shortly."""

    code = "ServiceUnavailable"
    status = 503
