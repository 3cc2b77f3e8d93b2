"""The lifecycle of an asynchronous invocation: the transition table, and nothing beyond it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from flowserver.machine.invocations.lifecycle import (
    AttemptBegan,
    AttemptFailed,
    AttemptSucceeded,
    CallEnded,
    Dequeued,
    FunctionUnavailable,
    InvocationMessage,
    StopAsked,
    advance_invocation,
    submitted,
)
from flowserver.machine.invocations.states import (
    ENDED,
    LEGAL,
    TRANSITIONS,
    InvocationSettings,
    InvocationState,
    InvocationStatus,
)

S = InvocationStatus
BROKE = AttemptFailed("KeyError", "why", 7)
RETURNED = AttemptSucceeded(b"{}", 7)
MESSAGES: tuple[InvocationMessage, ...] = (
    Dequeued(),
    FunctionUnavailable("FC.FunctionNotFound", "gone"),
    AttemptBegan(),
    RETURNED,
    BROKE,
    StopAsked(),
    CallEnded(),
)

settings = st.builds(
    InvocationSettings,
    retries=st.integers(0, 8),
    age_seconds=st.integers(1, 100),
    on_success=st.none() | st.just("on success"),
    on_failure=st.none() | st.just("on failure"),
)
"""The waiting times of a walk are drawn, too, so that some messages are late."""


def after(
    *messages: InvocationMessage, settings: InvocationSettings | None = None, now_ms: int = 1_000
) -> InvocationState:
    state = submitted(settings or InvocationSettings(), now_ms)
    for message in messages:
        before, state = state, advance_invocation(state, message, now_ms)
        assert state is not before, (state.status, message)
    return state


def ways(state: InvocationState) -> list[tuple[InvocationStatus | None, InvocationStatus]]:
    """The transitions that the events of an invocation show."""
    seen = [event.status for event in state.events]
    return list(zip([None, *seen], seen, strict=False))


@given(settings, st.lists(st.tuples(st.sampled_from(MESSAGES), st.integers(0, 60_000))))
def test_random_walks_take_only_legal_transitions(
    settings: InvocationSettings, walk: list[tuple[InvocationMessage, int]]
) -> None:
    now = 1_000
    state = submitted(settings, now)
    for message, pause in walk:
        now += pause
        before, state = state, advance_invocation(state, message, now)
        if before.is_over:
            assert state is before
        new = state.events[len(before.events) :]
        assert state.events == (*before.events, *new)
        assert all(event.time_ms == now for event in new)
        assert state.events[-1].status is state.status
        assert set(ways(state)) <= LEGAL
        assert (state.wake_at is not None) == (state.status is S.RETRYING)
        assert (state.ended_at is not None) == state.is_over == (state.status in ENDED)
        assert state.retries == sum(event.status is S.RETRYING for event in state.events) <= settings.retries


@given(settings, st.lists(st.sampled_from([BROKE, RETURNED, StopAsked()]), max_size=12))
def test_every_state_leads_to_an_end(settings: InvocationSettings, outcomes: list[InvocationMessage]) -> None:
    """From every reachable state, the next actions lead to an end."""
    state = submitted(settings, 0)
    for now in range(100):
        if state.is_over:
            return
        outcome = outcomes.pop() if outcomes else BROKE
        following: dict[InvocationStatus, InvocationMessage] = {
            S.ENQUEUED: Dequeued(),
            S.DEQUEUED: AttemptBegan(),
            S.RUNNING: outcome,
            S.RETRYING: AttemptBegan(),
            S.STOPPING: CallEnded(),
        }
        before, state = state, advance_invocation(state, following[state.status], now)
        assert state is not before
    raise AssertionError(state)


def test_every_transition_of_the_table_can_be_taken() -> None:
    none_left = InvocationSettings(retries=0)
    old = advance_invocation(after(now_ms=0), Dequeued(), 86_400_001)
    lives = [
        after(Dequeued(), AttemptBegan(), RETURNED),
        after(Dequeued(), AttemptBegan(), BROKE, AttemptBegan(), RETURNED),
        after(Dequeued(), AttemptBegan(), BROKE, settings=none_left),
        after(Dequeued(), FunctionUnavailable("FC.FunctionNotFound", "gone")),
        after(Dequeued(), AttemptBegan(), StopAsked(), CallEnded()),
        after(Dequeued(), AttemptBegan(), BROKE, StopAsked()),
        after(Dequeued(), StopAsked()),
        after(StopAsked()),
        old,
    ]
    assert {way for life in lives for way in ways(life)} == LEGAL
    assert {life.status for life in lives} == ENDED
    assert len(LEGAL) == len(TRANSITIONS)


def test_pauses_double() -> None:
    state, pauses = after(Dequeued(), AttemptBegan(), settings=InvocationSettings(retries=8)), []
    for _ in range(8):
        state = advance_invocation(state, BROKE, 0)
        pauses.append(state.wake_at)
        state = advance_invocation(state, AttemptBegan(), 0)
        assert (state.attempt, state.wake_at) == (len(pauses) + 1, None)
    assert pauses == [500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000]
    assert advance_invocation(state, BROKE, 0).status is S.FAILED


def test_age_counts_only_until_the_call() -> None:
    fresh = submitted(InvocationSettings(age_seconds=10), 0)
    taken = advance_invocation(fresh, Dequeued(), 10_000)
    assert taken.status is S.DEQUEUED
    assert advance_invocation(taken, AttemptBegan(), 99_000).status is S.RUNNING
    late = advance_invocation(fresh, Dequeued(), 10_001)
    assert [event.status for event in late.events] == [S.ENQUEUED, S.DEQUEUED, S.EXPIRED]
    assert late.error == "FC.InvocationExpired"


def test_a_lost_call_is_made_again_under_the_next_number() -> None:
    running = after(Dequeued(), AttemptBegan())
    again = advance_invocation(running, AttemptBegan(), 9_000)
    assert (again.status, again.attempt, again.retries, again.events) == (S.RUNNING, 2, 0, running.events)


def test_a_stop_wins_over_a_later_answer() -> None:
    stopping = advance_invocation(after(Dequeued(), AttemptBegan()), StopAsked(), 2_000)
    assert stopping.status is S.STOPPING
    for outcome in (CallEnded(), RETURNED, BROKE):
        assert advance_invocation(stopping, outcome, 3_000).status is S.STOPPED
    returned = after(Dequeued(), AttemptBegan(), RETURNED)
    for state in (stopping, returned):
        assert advance_invocation(state, StopAsked(), 3_000) is state


@pytest.mark.parametrize(
    ("messages", "target"),
    [
        ((Dequeued(), AttemptBegan(), RETURNED), "good"),
        ((Dequeued(), AttemptBegan(), BROKE), "bad"),
        ((Dequeued(), FunctionUnavailable("FC.FunctionNotFound", "gone")), "bad"),
        ((StopAsked(),), "bad"),
    ],
)
def test_destinations_of_results(messages: tuple[InvocationMessage, ...], target: str) -> None:
    settings = InvocationSettings(retries=0, on_success="good", on_failure="bad")
    assert after(*messages, settings=settings).destination == target
    assert after(*messages, settings=InvocationSettings(retries=0)).destination is None


def test_the_record_of_the_last_attempt() -> None:
    failed = after(Dequeued(), AttemptBegan(), BROKE)
    assert (failed.error, failed.cause, failed.duration_ms) == ("KeyError", "why", 7)
    running = advance_invocation(after(Dequeued()), AttemptBegan(), 2_000)
    stopping = advance_invocation(running, StopAsked(), 2_300)
    assert advance_invocation(stopping, CallEnded(), 2_500).duration_ms == 500
    assert advance_invocation(stopping, CallEnded(), 1_999).duration_ms == 0, "the clock was set back"
    good = advance_invocation(replace(failed, wake_at=None, status=S.RUNNING), AttemptSucceeded(b"x", 9), 2_000)
    assert (good.error, good.cause, good.result, good.duration_ms) == (None, None, b"x", 9)
