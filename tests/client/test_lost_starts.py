"""Whether an execution was started by a call whose answer was lost."""

import pytest

from flowserver.client import calls
from flowserver.client.errors import Conflict, Unreachable
from flowserver.client.exchanges import Answer, Conversation, Pause, with_retries
from flowserver.client.lost_starts import is_of_this_call
from flowserver.client.results import Execution

DATE = {"date": "Fri, 02 Jan 2026 03:04:05 GMT"}


@pytest.mark.parametrize(
    ("began", "version", "alias", "qualifier", "headers", "is_its"),
    [
        ("2026-01-02T03:04:04.500Z", None, None, None, DATE, True),
        ("2026-01-02T03:04:05.900Z", None, None, "LATEST", DATE, True),
        ("2026-01-02T03:04:01.999Z", None, None, None, DATE, False),  # it began before the call
        ("2026-01-02T03:04:05Z", 3, None, "3", DATE, True),
        ("2026-01-02T03:04:05Z", 3, "prod", "prod", DATE, True),
        ("2026-01-02T03:04:05Z", 3, "prod", "3", DATE, False),
        ("2026-01-02T03:04:05Z", 3, None, None, DATE, False),
        ("2026-01-02T03:04:05Z", None, None, None, {}, False),
        ("2026-01-02T03:04:05Z", None, None, None, {"date": "yesterday"}, False),
    ],
)
def test_whose_it_is(
    began: str, version: int | None, alias: str | None, qualifier: str | None, headers: dict[str, str], is_its: bool
) -> None:
    found = Execution("f", "e", "Succeeded", began, version=version, alias=alias, input={"a": 1, "b": 2})
    answer = Answer(200, headers, b"")
    given = {"b": 2, "a": 1}
    assert is_of_this_call(found, answer, input=given, qualifier=qualifier, since_seconds=3) is is_its
    assert not is_of_this_call(found, answer, input=None, qualifier=qualifier, since_seconds=3)


def test_a_try_that_the_server_did_not_read_has_started_nothing() -> None:
    """After a 429, and after a request that never left, an execution of that name is not this call's."""
    conversation: Conversation[Execution] = with_retries(calls.start("f", name="e"), 3)
    next(conversation)
    assert isinstance(conversation.send(Answer(429, {}, b"")), Pause)
    next(conversation)
    assert isinstance(conversation.throw(Unreachable("refused", was_sent=False)), Pause)
    next(conversation)
    with pytest.raises(Conflict):
        conversation.send(Answer(409, {}, b'{"code": "ExecutionAlreadyExists"}'))
