"""Names of the executions that schedules start. The same tick of a schedule always gives the same."""

from hashlib import sha256
from typing import Final

from flowserver.base.clock import compact_instant

NAME_CHARACTERS_MAX: Final = 128
HASH_CHARACTERS: Final = 8


def execution_name(schedule_name: str, at_ms: int, *, with_ms: bool = False) -> str:
    """`<schedule>-<yyyymmddThhmmssZ>`; `with_ms` has the milliseconds after the seconds.

    The name of a schedule that leaves no room for that is cut, and a hash of it follows.
    """
    ending = f"-{compact_instant(at_ms, with_ms=with_ms)}"
    if len(schedule_name) + len(ending) <= NAME_CHARACTERS_MAX:
        return schedule_name + ending
    digest = sha256(schedule_name.encode()).hexdigest()[:HASH_CHARACTERS]
    room = NAME_CHARACTERS_MAX - len(ending) - len(digest) - 1
    return f"{schedule_name[:room]}-{digest}{ending}"
