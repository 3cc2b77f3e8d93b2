"""Plans of redrives for people: what each would do."""

from collections.abc import Iterator
from typing import Any, Final

NAMED_MAX: Final = 3
"""Steps that are named; others are counted."""


def shown_plan(path: str, plan: dict[str, Any]) -> str:
    """What a redrive of the execution at that path would run again and keep, or why it cannot be made."""
    if not plan["redrivable"]:
        return f"{path} cannot be redriven: {'; '.join(plan['reasons'])}"
    again = "; ".join(_groups(plan)) or "nothing"
    calls = plan["callsAgainCount"]
    called = f"\n  Calls made again, with their idempotency keys: {calls}." if calls else ""
    kept = [each["step"] if each["times"] == 1 else f"{each['step']} ({each['times']} times)" for each in plan["kept"]]
    return f"{path}\n  Would run again: {again}.{called}\n  Kept: {_counted(kept, len(kept)) or 'nothing'}."


def _groups(plan: dict[str, Any]) -> Iterator[str]:
    """The steps that would run again, by the reason, each with its count if there are many."""
    counts = {"failed": plan["failedCount"], "aborted": plan["abortedCount"]}
    counts["asked"] = plan["againCount"] - sum(counts.values())
    for why, count in counts.items():
        if count:
            named = _counted([each["path"] for each in plan["again"] if each["why"] == why], count)
            yield named if why == "asked" else f"{count} {why} ({named})"


def _counted(names: list[str], count: int) -> str:
    named = names[:NAMED_MAX]
    rest = count - len(named)
    return ", ".join(named) + (f" and {rest} more" if rest else "")
