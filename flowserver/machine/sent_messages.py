"""The messages that task steps send to queues and topics: their ids, bodies and tags, and the replies of the service.

A message's id follows from the attempt that sends it, so sending it again after a crash leaves one message, until the
message is deleted.
"""

from flowserver.base.derived_ids import derived_id
from flowserver.base.errors import InvalidArgument
from flowserver.base.json_values import Json, JsonObject, dump_json
from flowserver.base.xml_characters import NOT_IN_XML
from flowserver.language.targets import MESSAGE_BODY
from flowserver.machine.commands import InvokeTask


def message_id(command: InvokeTask) -> str:
    """The id of the message that this attempt sends."""
    return derived_id(command.submission_key).replace("-", "").upper()


def message_body(params: dict[str, Json] | None) -> str:
    """The text that goes to a queue or topic: a text as it is, everything else as JSON."""
    body = (params or {}).get(MESSAGE_BODY)
    return body if isinstance(body, str) else dump_json(body)


def checked_body(body: str) -> str:
    """The body; raises InvalidArgument for a character that the XML of a receive cannot hold."""
    if found := NOT_IN_XML.search(body):
        raise InvalidArgument(f"MessageBody holds the character U+{ord(found[0]):04X}, which no message can")
    return body


def checked_tag(tag: str | None) -> str | None:
    """The tag; raises InvalidArgument for a character that an HTTP header cannot hold."""
    if tag is not None and not tag.isprintable():
        raise InvalidArgument("MessageTag must be printable")
    return tag


def reply_of(command: InvokeTask, body_md5: str) -> JsonObject:
    """The reply of the service. Its request id is for logs only."""
    request_id = derived_id(f"{command.submission_key}#request").upper()
    return {"MessageId": message_id(command), "RequestId": request_id, "MessageBodyMD5": body_md5}
