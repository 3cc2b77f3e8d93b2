"""What was probably meant when the server does not have what was named. Loaded when a command fails."""

from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from itertools import islice
from typing import Final

from flowserver.base.lazy_import import load
from flowserver.base.step_paths import is_path, without_numbers
from flowserver.cli.remote.session import Session
from flowserver.client.errors import ClientError, Conflict, Refused

_STEP_NAMES: Final = "flowserver.cli.yaml_text:step_names"

NAMES_MAX: Final = 1_000
"""Names that are read for a suggestion."""


def suggestion(session: Session, error: ClientError) -> str:
    """`; did you mean NAME?`, or what else there is to say to the error; or nothing."""
    if not isinstance(error, Refused):
        return ""
    if error.code == "ExecutionAlreadyExists":
        return f"; {_state(session)}: flowserver watch {session.asked_flow}/{session.asked_name}"
    if session.command.endswith(("executions redrive", "executions restart")) and isinstance(error, Conflict):
        return _way_on(session, is_redrive=session.command.endswith("redrive"))
    if error.code not in _NAMES:
        return ""
    wanted, names = _NAMES[error.code](session)
    return did_you_mean(wanted, names)


def _state(session: Session) -> str:
    """What `watch` shows of the execution that has the name."""
    try:
        found = session.client.get_execution(session.asked_flow or "", session.asked_name or "")
    except ClientError:
        return "see it"
    return "how it ended" if found.ended else "see how it goes on"


def _way_on(session: Session, *, is_redrive: bool) -> str:
    """The other command that lets an execution go on, if it needs that."""
    path = f"{session.asked_flow}/{session.asked_name}"
    try:
        found = session.client.get_execution(session.asked_flow or "", session.asked_name or "")
    except ClientError:
        return ""
    if is_redrive and found.parked_error is not None:
        return f"; it is parked: flowserver executions restart {path}"
    if not is_redrive and (found.waiting_steps or (found.ended and not found.succeeded)):
        return f"; redrive it: flowserver executions redrive {path}"
    return ""


def step_suggestion(session: Session, flow: str, name: str, step: str, definition: str) -> str:
    """The same for a step that an execution shall go back to, with its own definition (`same`), the flow's `current`
    one or a version; nothing if the definition has that step.
    """
    client = session.client
    try:
        if definition == "same":
            text = client.get_execution(flow, name).definition
        elif definition == "current":
            text = client.get_flow(flow).definition
        else:
            text = client.get_version(flow, int(definition)).definition
    except (ClientError, ValueError):
        return ""
    names = set(load(_STEP_NAMES)(text))
    return "" if step in names else did_you_mean(step, names)


def events_suggestion(session: Session, flow: str, name: str, step: str) -> str:
    """What to say to a step, given by name or path, of which no event was found."""
    try:
        paths = [each.path for each in islice(session.client.steps(flow, name), NAMES_MAX)]
        names = load(_STEP_NAMES)(session.client.get_execution(flow, name).definition)
    except ClientError:
        return ""
    general = without_numbers(step)
    if any(without_numbers(path) == general for path in paths):
        return f"; flowserver executions describe {flow}/{name} says how many iterations there are"
    known = [*paths, *names] if is_path(step) else [*names, *(path.rpartition(".")[2] for path in paths)]
    return "" if step in known else did_you_mean(general, known)


def did_you_mean(wanted: str | None, names: Iterable[str]) -> str:
    """`; did you mean NAME?` for the nearest of the names; nothing if none is near, or they cannot be read."""
    if wanted is None:
        return ""
    try:
        near = get_close_matches(wanted, list(islice(names, NAMES_MAX)), n=1)
    except ClientError:
        return ""
    return f"; did you mean {near[0]}?" if near else ""


_Found = tuple[str | None, Iterator[str]]


def _flows(session: Session) -> _Found:
    return session.asked_flow, (each.name for each in session.client.flows())


def _executions(session: Session) -> _Found:
    return session.asked_name, (each.name for each in session.client.executions(session.asked_flow))


def _schedules(session: Session) -> _Found:
    return session.asked_name, (each.name for each in session.client.schedules(session.asked_flow))


def _aliases(session: Session) -> _Found:
    return session.asked_alias, (each.name for each in session.client.aliases(session.asked_flow or ""))


def _functions(session: Session) -> _Found:
    return session.asked_name, (each.path for each in session.client.functions())


def _queues(session: Session) -> _Found:
    return session.asked_name, (each.name for each in session.client.queues())


def _topics(session: Session) -> _Found:
    return session.asked_name, (each.name for each in session.client.topics())


_NAMES: Final[dict[str, Callable[[Session], _Found]]] = {
    "FlowNotExists": _flows,
    "ExecutionNotExists": _executions,
    "ScheduleNotExists": _schedules,
    "FlowAliasNotExists": _aliases,
    "FunctionNotExists": _functions,
    "QueueNotExist": _queues,
    "TopicNotExist": _topics,
}
"""For each error what was named, and the names that there are."""
