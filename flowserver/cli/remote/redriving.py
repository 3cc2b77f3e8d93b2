"""Redrives for people: what one would do."""

from typing import Any, Final

NAMED_MAX: Final = 3
"""Steps that are named; others are counted."""


def shown_plan(path: str, plan: dict[str, Any]) -> str:
    """What a redrive of the execution at that path would run again and keep, or why it cannot be made."""
    if not plan["redrivable"]:
        return f"{path} cannot be redriven: {'; '.join(plan['reasons'])}"
    again = _counted([each["path"] for each in plan["again"]], plan["againCount"])
    kept = [each["step"] if each["times"] == 1 else f"{each['step']} ({each['times']} times)" for each in plan["kept"]]
    return f"{path}\n  Would run again: {again}.\n  Kept: {_counted(kept, len(kept)) or 'nothing'}."


def _counted(names: list[str], count: int) -> str:
    named = names[:NAMED_MAX]
    rest = count - len(named)
    return ", ".join(named) + (f" and {rest} more" if rest else "")
