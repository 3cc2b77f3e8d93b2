"""What of a failed batch is tried again, and how: its commit may have succeeded, and only the answer be lost."""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

from msgspec.structs import replace
from sqlalchemy.exc import DataError, IntegrityError, SQLAlchemyError

from flowserver.engine.commit.batch import BatchResult
from flowserver.engine.commit.batch_items import Envelope, Item, Receipt, ReceiptKind, Tried
from flowserver.machine.events import Event
from flowserver.machine.messages import RetryLostCall
from flowserver.store.cluster.nodes import LeaseLost
from flowserver.store.executions.saving_headers import VersionConflict
from flowserver.store.sql.errors import is_conflict, lost_connection
from flowserver.store.sql.unreadable import is_damage


def for_retry(items: Sequence[Item], tried: BatchResult | None) -> list[Item]:
    """The items for another try. The first may have been committed, so even a start with a unique name is looked up,
    and a message that was applied knows the event to look for: the last that its execution recorded. `RetryLostCall`
    records none, so another message's event would prove it; the attempt that it names tells whether it was applied.
    """
    answers = [] if tried is None else tried.answers
    last = {} if tried is None else {each.stored.execution.execution_id: each.events[-1:] for each in tried.changes}
    return [_again(item, answer, last) for item, answer in zip_longest(items, answers)]


def _again(item: Item, answer: Any, last: Mapping[str, Sequence[Event]]) -> Item:
    if not isinstance(item, Envelope):
        return item
    if item.new is not None:
        item = replace(item, new=replace(item.new, name_is_unique=False))
    events = None if isinstance(item.message, RetryLostCall) else last.get(item.execution_id)
    if not events or not isinstance(answer, Receipt) or answer.kind is not ReceiptKind.APPLIED:
        return item
    return replace(item, tried=Tried(answer, events[0]))


def is_worth_retrying(error: Exception, tries: int) -> bool:
    """Whether another try may succeed at once.

    It may after a conflict (each time), or after a lost session or apparent damage (the first time only).
    """
    if isinstance(error, VersionConflict) or is_conflict(error):
        return True
    return tries == 0 and (is_damage(error) or lost_connection(error))


def is_at_fault(error: Exception) -> bool:
    """Whether the item is at fault: our code failed on it, or the database cannot read or store its rows."""
    if not isinstance(error, SQLAlchemyError):
        return not isinstance(error, (VersionConflict, LeaseLost))
    return isinstance(error, (DataError, IntegrityError)) or is_damage(error)
