"""Plans of redrives for people: what each would do."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from flowserver.client.results import Step

NAMED_MAX: Final = 3
"""Steps that are named; others are counted."""


CHILDREN_MAX: Final = 10
"""Sub-flow steps that are shown; others are counted."""


def shown_plan(path: str, plan: dict[str, Any], after: Sequence[Step] = ()) -> str:
    """What a redrive of the execution at that path would run again and keep, or why it cannot be made.

    If it goes back to a step, `after` has the steps after that.
    """
    if not plan["redrivable"]:
        return f"{path} cannot be redriven: {'; '.join(plan['reasons'])}"
    again = "; ".join(_groups(plan, after)) or "nothing"
    calls = plan["callsAgainCount"]
    called = f"\n  Calls made again, with their idempotency keys: {calls}." if calls else ""
    kept = [each["step"] if each["times"] == 1 else f"{each['step']} ({each['times']} times)" for each in plan["kept"]]
    undone = [f"{each['step']} (by {each['undoneBy']})" for each in plan["kept"] if each.get("undoneBy")]
    warned = f"\n  Kept, although undone since: {', '.join(undone)}." if undone else ""
    named = _counted(kept, len(kept)) or "nothing"
    return f"{path}\n  Would run again: {again}.{called}{_children(plan)}\n  Kept: {named}.{warned}"


def _children(plan: dict[str, Any]) -> str:
    """Lines that say what sub-flow steps would do."""
    found = plan.get("children", [])
    lines = [f"\n  {each['parent']}, step {each['path']}: {_child(each)}" for each in found[:CHILDREN_MAX]]
    rest = len(found) - len(lines)
    return "".join(lines) + (f"\n  and {rest} more sub-flow steps" if rest else "")


def _child(each: dict[str, Any]) -> str:
    child, reason = each["child"] or "an execution that the key is not for", each["reason"]
    match each["does"]:
        case "continues":
            return f"continues {child}"
        case "starts":
            return f"starts {child}" + (f", because the last one cannot be continued: {reason}" if reason else "")
        case "joins":
            return f"finds {child} running"
        case _:
            return f"fails with {reason}"


def steps_after(steps: Iterable[Step], name: str) -> Sequence[Step]:
    """The steps of the flow's own list that were entered first after the one of that name: they run again with it."""
    own = [step for step in steps if not {".", "["} & set(step.path)]
    names = [step.path for step in own]
    return own[names.index(name) + 1 :] if name in names else ()


def _groups(plan: dict[str, Any], after: Sequence[Step]) -> Iterator[str]:
    """The steps that would run again, by the reason, each with its count if there are many."""
    counts = {"failed": plan["failedCount"], "aborted": plan["abortedCount"]}
    counts["asked"] = plan["againCount"] - sum(counts.values())
    for why, count in counts.items():
        if count:
            named = _counted([each["path"] for each in plan["again"] if each["why"] == why], count)
            yield f"{named}{_following(after)}" if why == "asked" else f"{count} {why} ({named})"


def _following(after: Sequence[Step]) -> str:
    loops = {step.path: f" ({_iterations(step.iterations.total)})" for step in after if step.iterations}
    names = [step.path + loops.get(step.path, "") for step in after]
    return f" and what comes after it: {_counted(names, len(names))}" if names else ""


def _iterations(count: int) -> str:
    return "1 iteration" if count == 1 else f"{count} iterations"


def _counted(names: list[str], count: int) -> str:
    named = names[:NAMED_MAX]
    rest = count - len(named)
    return ", ".join(named) + (f" and {rest} more" if rest else "")
