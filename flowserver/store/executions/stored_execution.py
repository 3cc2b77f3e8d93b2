"""An execution as the store has it: what the machine knows of it, and what its rows hold besides."""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from flowserver.base.json_values import JsonObject
from flowserver.machine.state import Execution, WaitKind
from flowserver.store.executions.history_parts import KnownParts

SCOPE_BYTES: Final = 1_000
"""Approximate memory of a scope besides its documents."""

FINISHED_BYTES: Final = 300
"""The same for a finished branch or iteration."""

COSTLY_BYTES: Final = 16_384
"""An execution that keeps at least this much in memory is expensive to load."""


class SavedScope(NamedTuple):
    """A scope's row without its counters, kept to find what has changed. Documents are compared by identity."""

    wait: WaitKind
    wake_at: int | None
    node_id: str | None
    local: JsonObject
    step_input: JsonObject | None


class Parent(NamedTuple):
    """Columns of an execution that a step has started: see the table."""

    parent_id: str
    parent_wait: int | None
    depth: int


@dataclass(slots=True)
class StoredExecution:
    """An execution as loaded or to be inserted, with the fields that the machine does not need."""

    execution: Execution
    flow_id: str
    definition_id: str
    version: int
    """The version in the database; 0 means that there is no row yet."""
    input_text: str
    parked_error: str | None = None
    flow_version: int | None = None
    """The published version that a new execution runs; not loaded."""
    flow_alias: str | None = None
    """The alias that drew the version; not loaded."""
    parent: Parent | None = None
    """The parent of a new execution; not loaded."""
    leases: dict[int, str] = field(default_factory=dict, compare=False)
    """The node that makes a scope's call, by scope id, as stored."""
    saved: dict[int, SavedScope] = field(default_factory=dict, compare=False)
    """The rows of its scopes, by scope id."""
    joining: set[int] | None = field(default_factory=set, compare=False)
    """Scopes that have stored finished items; None until scopes are loaded."""
    parts: KnownParts = field(default_factory=KnownParts, compare=False)
    """Large values that its history holds already."""
    redrive_token: str | None = field(default=None, compare=False)
    """The client token of the redrive that is to be saved."""
    unreadable: str | None = field(default=None, compare=False)
    """What is wrong with the header of an execution that has ended."""
    is_bare: bool = field(default=False, compare=False)
    """Whether nothing but its header may be read."""

    @property
    def held_bytes(self) -> int:
        """Estimated memory: scopes, plus the JSON sizes of documents, known parts, and twice the input.

        The input is kept as text and as an object. An object takes as much memory as its JSON if that is mostly text,
        and up to about thirty times as much otherwise.
        """
        execution = self.execution
        documents = 2 * len(self.input_text) + execution.document_bytes + self.parts.held_bytes
        return documents + SCOPE_BYTES * len(self.saved) + FINISHED_BYTES * execution.finished_count

    @property
    def is_worth_keeping(self) -> bool:
        """Whether it waits for many messages, and loading it for each would cost more than handling them."""
        if self.joining is None or self.held_bytes < COSTLY_BYTES:
            return False
        return any(scope.wait is WaitKind.JOIN and scope.option is None for scope in self.execution.scopes.values())

    def note_saved(self, scope_id: int, saved: SavedScope) -> None:
        """Record what the scope's row holds now."""
        self.saved[scope_id] = saved
        if saved.node_id is None:
            self.leases.pop(scope_id, None)
        else:
            self.leases[scope_id] = saved.node_id

    def note_removed(self, scope_id: int) -> None:
        """Record that the scope's row is deleted."""
        self.saved.pop(scope_id, None)
        self.leases.pop(scope_id, None)
