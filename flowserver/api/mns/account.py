"""The calls on the account. Its one attribute names a bucket for logs, which this server does not write."""

from flowserver.api.mns.answers import Answer, answered
from flowserver.api.mns.calls import Call, known_fields
from flowserver.api.mns.xml_documents import read_document
from flowserver.base.errors import InvalidArgument
from flowserver.operations.operations import Operations


async def get_account(_operations: Operations, _call: Call) -> Answer:
    """GetAccountAttributes; clients require the element, even if it is empty."""
    return answered(200, "Account", {"LoggingBucket": ""})


async def set_account(_operations: Operations, call: Call) -> Answer:
    """SetAccountAttributes. Raises InvalidArgument for a bucket."""
    if known_fields(read_document(call.body, "Account"), ("LoggingBucket",)).get("LoggingBucket"):
        raise InvalidArgument("this server writes no logs of messages, so it takes no LoggingBucket")
    return Answer(204)
