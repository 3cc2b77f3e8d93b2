"""The calls on queues and their messages: the elements and parameters that each reads, and its answer."""

from collections.abc import Sequence
from dataclasses import replace
from xml.etree.ElementTree import Element

from flowserver.api.mns.answers import Answer, answered
from flowserver.api.mns.calls import (
    Call,
    boolean_in,
    integer,
    integer_in,
    is_true,
    known_fields,
    located,
    paging,
)
from flowserver.api.mns.faults import MissingReceiptHandle, MissingVisibilityTimeout, spelled
from flowserver.api.mns.xml_documents import Fields, children, local_name, read_document, write_list
from flowserver.operations.operations import Operations
from flowserver.operations.queues import OutgoingMessage, QueueAttributes, make_handle
from flowserver.store.queues.messages import Counts, QueueMessage
from flowserver.store.queues.queues import QueueRow

QUEUE_FIELDS = (
    *("DelaySeconds", "MaximumMessageSize", "MessageRetentionPeriod", "VisibilityTimeout", "PollingWaitSeconds"),
    "LoggingEnabled",
    *("QueueName", "CreateTime", "LastModifyTime", "ActiveMessages", "InactiveMessages", "DelayMessages"),
)
"""The last six are answers, which a client may send back; they have no effect."""


async def create_queue(operations: Operations, call: Call) -> Answer:
    """CreateQueue, or SetQueueAttributes with `metaoverride=true`."""
    (name,) = call.names
    fields = known_fields(read_document(call.body, "Queue"), QUEUE_FIELDS) if call.body else {}
    if is_true(call.query.get("metaoverride")):
        await operations.queues.set_attributes(name, _attributes(fields))
        return Answer(204)
    is_new = await operations.queues.create(name, _attributes(fields))
    return located(call, f"/queues/{name}", is_new=is_new)


async def get_queue(operations: Operations, call: Call) -> Answer:
    """GetQueueAttributes."""
    row, counts = await operations.queues.describe(call.names[0])
    return answered(200, "Queue", _queue_fields(row, counts))


async def delete_queue(operations: Operations, call: Call) -> Answer:
    """DeleteQueue."""
    await operations.queues.delete(call.names[0])
    return Answer(204)


async def list_queues(operations: Operations, call: Call) -> Answer:
    """ListQueue; with `x-mns-with-meta: true` each with its attributes, but without its counts, which are expensive."""
    prefix, marker, limit = paging(call)
    page = await operations.queues.list(prefix=prefix, marker=marker, limit=limit)
    with_meta = is_true(call.headers.get("x-mns-with-meta"))
    items = [
        {"QueueURL": f"{call.host_url}/queues/{row.name}", **(_queue_fields(row, None) if with_meta else {})}
        for row in page.items
    ]
    return Answer(200, write_list("Queues", "Queue", items, {"NextMarker": page.next_token}))


async def send(operations: Operations, call: Call) -> Answer:
    """SendMessage or BatchSendMessage."""
    root = read_document(call.body, "Message", "Messages")
    is_batch = local_name(root) == "Messages"
    wanted = [_outgoing(element) for element in (children(root, "Message") if is_batch else [root])]
    sent = await operations.queues.send(call.names[0], wanted)
    fields = [_sent_fields(message) for message in sent]
    if is_batch:
        return Answer(201, write_list("Messages", "Message", fields))
    return answered(201, "Message", fields[0])


def is_peek(call: Call) -> bool:
    """Whether a receive is a peek, which changes nothing."""
    return is_true(call.query.get("peekonly"))


async def receive(operations: Operations, call: Call) -> Answer:
    """ReceiveMessage, BatchReceiveMessage, PeekMessage or BatchPeekMessage."""
    query = call.query
    is_batch = "numofmessages" in query
    count = integer("numOfMessages", query["numofmessages"]) if is_batch else 1
    if is_peek(call):
        messages = await operations.queues.peek(call.names[0], count=count)
        return _messages([_peeked_fields(message) for message in messages], is_batch=is_batch)
    wait = query.get("waitseconds")
    messages = await operations.queues.receive(
        call.names[0], count=count, wait_seconds=None if wait is None else integer("waitseconds", wait)
    )
    return _messages([_received_fields(message) for message in messages], is_batch=is_batch)


async def delete(operations: Operations, call: Call) -> Answer:
    """DeleteMessage or BatchDeleteMessage; the answer has an error for each message that could not be deleted."""
    handle = call.query.get("receipthandle")
    if handle is not None:
        (error,) = await operations.queues.delete_messages(call.names[0], [handle])
        if error is not None:
            raise error
        return Answer(204)
    if not call.body:
        raise MissingReceiptHandle
    handles = _handles(read_document(call.body, "ReceiptHandles"))
    errors = await operations.queues.delete_messages(call.names[0], handles)
    failed = [
        {"ErrorCode": spelled(error)[0], "ErrorMessage": error.message, "ReceiptHandle": handle}
        for handle, error in zip(handles, errors, strict=True)
        if error is not None
    ]
    return Answer(404, write_list("Errors", "Error", failed)) if failed else Answer(204)


async def change_visibility(operations: Operations, call: Call) -> Answer:
    """ChangeMessageVisibility."""
    handle, seconds = call.query.get("receipthandle"), call.query.get("visibilitytimeout")
    if not handle:
        raise MissingReceiptHandle
    if seconds is None:
        raise MissingVisibilityTimeout
    fresh, until = await operations.queues.change_visibility(
        call.names[0], handle, integer("VisibilityTimeout", seconds)
    )
    return answered(200, "ChangeVisibility", {"ReceiptHandle": fresh, "NextVisibleTime": until})


def _attributes(fields: dict[str, str]) -> QueueAttributes:
    return QueueAttributes(
        delay_seconds=integer_in(fields, "DelaySeconds"),
        message_bytes_max=integer_in(fields, "MaximumMessageSize"),
        retention_seconds=integer_in(fields, "MessageRetentionPeriod"),
        visibility_seconds=integer_in(fields, "VisibilityTimeout"),
        polling_seconds=integer_in(fields, "PollingWaitSeconds"),
        is_logged=boolean_in(fields, "LoggingEnabled"),
    )


def _outgoing(element: Element) -> OutgoingMessage:
    fields = known_fields(element, ("MessageBody", "DelaySeconds", "Priority"))
    message = OutgoingMessage(body=fields.get("MessageBody", ""), delay_seconds=integer_in(fields, "DelaySeconds"))
    priority = integer_in(fields, "Priority")
    return message if priority is None else replace(message, priority=priority)


def _handles(root: Element) -> list[str]:
    """The receipt handles, in innermost elements: the Node SDK nests them if it is given objects."""
    return [each.text or "" for each in root.iter() if local_name(each) == "ReceiptHandle" and not len(each)]


def _messages(items: Sequence[Fields], *, is_batch: bool) -> Answer:
    if is_batch:
        return Answer(200, write_list("Messages", "Message", items))
    (only,) = items
    return answered(200, "Message", only)


def _queue_fields(row: QueueRow, counts: Counts | None) -> Fields:
    return {
        "QueueName": row.name,
        "CreateTime": row.created_at // 1000,
        "LastModifyTime": row.modified_at // 1000,
        "DelaySeconds": row.delay_seconds,
        "MaximumMessageSize": row.message_bytes_max,
        "MessageRetentionPeriod": row.retention_seconds,
        "VisibilityTimeout": row.visibility_seconds,
        "PollingWaitSeconds": row.polling_seconds,
        "LoggingEnabled": row.is_logged,
        "ActiveMessages": None if counts is None else counts.active,
        "InactiveMessages": None if counts is None else counts.inactive,
        "DelayMessages": None if counts is None else counts.delayed,
    }


def _sent_fields(message: QueueMessage) -> Fields:
    handle = None if message.receipt is None else make_handle(message.message_id, message.receipt)
    return {"MessageId": message.message_id, "MessageBodyMD5": message.body_md5, "ReceiptHandle": handle}


def _peeked_fields(message: QueueMessage) -> dict[str, object]:
    first = message.first_dequeued_at
    return {
        "MessageId": message.message_id,
        "MessageBody": message.body,
        "MessageBodyMD5": message.body_md5,
        "EnqueueTime": message.enqueued_at,
        "FirstDequeueTime": 0 if first is None else first,
        "DequeueCount": message.dequeue_count,
        "Priority": message.priority,
        "TraceParent": message.traceparent,
    }


def _received_fields(message: QueueMessage) -> Fields:
    return {
        **_peeked_fields(message),
        "ReceiptHandle": make_handle(message.message_id, message.receipt or ""),
        "NextVisibleTime": message.visible_at,
    }
