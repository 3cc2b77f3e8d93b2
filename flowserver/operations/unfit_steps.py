"""Why an execution does not fit another definition, for people: few words, and what to do instead."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Final

from flowserver.base.step_paths import folded
from flowserver.language.graph import Flow

_GONE: Final = "is not in the definition"


def shown_reasons(reasons: Iterable[str], new: Flow) -> Sequence[str]:
    """The reasons, `step PATH WORDS`; those that say the same of several iterations as one.

    To a step that is gone, with the nearest name there is, and the step of the flow's own list to go back to.
    """
    paths_of: dict[str, list[str]] = {}
    for reason in reasons:
        _, path, words = reason.split(" ", 2)
        paths_of.setdefault(words, []).append(path)
    return [
        f"step {path} {words}{_advice(path, new) if words == _GONE else ''}"
        for words, paths in paths_of.items()
        for path in folded(paths)
    ]


def _advice(path: str, new: Flow) -> str:
    name = path.partition(" ")[0].rpartition(".")[2]
    names = {step.name for steps in new.lists for step in steps.steps}
    near = get_close_matches(name, sorted(names), n=1)
    begin = path.replace("[", ".").split(".")[0]
    advice = [f"which has {near[0]}"] if near else []
    if begin in new.root.position:
        advice.append(f"to run {begin} again as a whole, go back to it with `from` (--from {begin})")
    return "".join(f", {each}" if each.startswith("which") else f"; {each}" for each in advice)
