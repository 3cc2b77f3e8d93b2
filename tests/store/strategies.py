"""Random executions of every shape that the machine can make."""

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from flowserver.base.json_values import json_bytes
from flowserver.machine.state import Scope, WaitKind

INT_MAX = 2**31 - 1
INSTANT_MAX = 253_402_300_799_999

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
counts = st.integers(0, INT_MAX)
instants = st.integers(0, INSTANT_MAX)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(10**17, 10**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
json_objects = st.dictionaries(texts, json_values, max_size=4)


@st.composite
def scopes(draw: st.DrawFn) -> Scope:
    local, step_input = draw(json_objects), draw(st.none() | json_objects)
    wait = draw(st.sampled_from(WaitKind))
    wakes = instants if wait is WaitKind.TIMER else st.none() | instants
    return Scope(
        scope_id=0,
        parent_id=draw(st.none() | counts),
        list_id=draw(counts),
        item=draw(counts),
        last_event_id=draw(counts),
        local=local,
        step_index=draw(counts),
        step_input=step_input,
        entered_event_id=draw(counts),
        wait=wait,
        wait_id=draw(counts),
        wake_at=draw(wakes),
        attempt=draw(counts),
        retries=draw(st.dictionaries(st.integers(0, 50), counts, max_size=3)),
        option=draw(st.none() | st.integers(-1, 100)),
        next_item=draw(counts),
        open_items=draw(counts),
        document_bytes=json_bytes(local) + (0 if step_input is None else json_bytes(step_input)),
    )


def trees() -> st.SearchStrategy[dict[int, Scope]]:
    return st.dictionaries(st.integers(1, 12), scopes(), max_size=6).map(
        lambda tree: {scope_id: replace(scope, scope_id=scope_id) for scope_id, scope in tree.items()}
    )


def counters() -> st.SearchStrategy[dict[str, Any]]:
    """The header fields that a turn changes."""
    return st.fixed_dictionaries(
        {"next_event_id": counts, "next_scope_id": counts, "next_wait_id": counts, "document_bytes": counts}
    )


def headers() -> st.SearchStrategy[dict[str, Any]]:
    """The header fields that never change."""
    return st.fixed_dictionaries(
        {
            "flow_name": texts.filter(lambda text: "\0" not in text),
            "input": json_objects,
            "started_at": instants,
            "deadline_at": instants,
            "callback_token": st.none() | st.just("token"),
        }
    )
