"""The end of an attempt gives its beginning, if that is remembered."""

from flowserver.machine.attempts_under_way import AttemptsUnderWay, Begun
from flowserver.machine.events import Event, EventType

BEGIN, SUBMIT, END = EventType.TASK_STARTED, EventType.TASK_SUBMITTED, EventType.TASK_SUCCEEDED


def test_an_attempt_begins_before_it_is_submitted() -> None:
    attempts = AttemptsUnderWay()
    assert attempts.committed("e", [Event(3, 2, BEGIN, "ask", 1_000, "{}")]) == []
    assert attempts.committed("e", [Event(4, 3, SUBMIT, "ask", 1_100, "{}")]) == []
    end = Event(5, 4, END, "ask", 3_000, "{}")
    assert attempts.committed("e", [end]) == [(end, Begun(3, 1_000))]
    assert attempts.committed("e", [end]) == [(end, None)]


def test_an_attempt_of_another_node_ends_without_a_beginning() -> None:
    attempts = AttemptsUnderWay()
    scheduled = Event(2, 1, EventType.TASK_SCHEDULED, "ask", 900, "{}")
    attempts.committed("e", [scheduled, Event(3, 2, BEGIN, "ask", 1_000, "{}")])
    end = Event(4, 3, END, "ask", 9_000, "{}")
    assert attempts.committed("f", [Event(5, 3, SUBMIT, "ask", 1_100, "{}"), end]) == [(end, None)]


def test_attempts_that_are_forgotten_are_the_oldest() -> None:
    attempts = AttemptsUnderWay(remembered_max=2)
    for number in range(1, 4):
        attempts.committed("e", [Event(number, 0, BEGIN, "ask", number, "{}")])
    ended = attempts.committed("e", [Event(9, number, END, "ask", 9, "{}") for number in range(1, 4)])
    assert [begun for _, begun in ended] == [None, Begun(2, 2), Begun(3, 3)]
