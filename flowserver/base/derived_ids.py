"""Ids that follow from others: the same text always gives the same id, so what is repeated after a crash is found."""

from typing import Final
from uuid import NAMESPACE_OID, UUID, uuid5

_ARRIVALS: Final = UUID("1a3b7a52-5b0a-5d0e-8f2b-0c7d6c1e4b11")
"""Name space of the ids made from those of deliveries; any fixed value does."""


def derived_id(text: str) -> str:
    """The id, as a UUID, that follows from the text."""
    return str(uuid5(NAMESPACE_OID, text))


def child_execution_id(execution_id: str, scope_id: int, wait_id: int) -> str:
    """The id of the execution that an attempt of a sub-flow step starts. The same attempt always gives the same id."""
    return derived_id(f"{execution_id}#{scope_id}#{wait_id}")


def scheduled_execution_id(schedule_id: str, at_ms: int, *, is_trigger: bool) -> str:
    """The id of the execution that a schedule starts for an instant (ms). The same instant always gives the same id."""
    return derived_id(f"{schedule_id}@{at_ms}{'!' if is_trigger else ''}")


def arrived_id(delivery_id: str) -> str:
    """The id, of 32 hexadecimal digits, of what a delivery becomes where it arrives."""
    return uuid5(_ARRIVALS, delivery_id).hex.upper()
