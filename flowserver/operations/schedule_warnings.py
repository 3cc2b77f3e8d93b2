"""What is doubtful about a schedule: flows, versions and aliases that do not exist, since they may come later, and an
expression or a time zone that the server knew once and cannot read any more.
"""

from dataclasses import dataclass

from sqlalchemy import Connection

from flowserver.language.diagnostics import Target, shown
from flowserver.machine.schedules.state import Schedule
from flowserver.machine.versions.routing import is_version, no_version, version_in
from flowserver.store.versions.aliases import find_alias
from flowserver.store.versions.resolving import is_latest
from flowserver.store.versions.versions import find_version


@dataclass(frozen=True, slots=True)
class ScheduleWarning:
    """One finding: `unknown-flow`, `unknown-qualifier` or `unreadable-timing`, what it says, and what is missing, if
    that is something of the server.
    """

    id: str
    message: str
    target: Target | None = None


def unknown_flow(flow_name: str) -> ScheduleWarning:
    """The flow does not exist yet."""
    message = f"there is no flow {shown(flow_name)} yet"
    return ScheduleWarning("unknown-flow", message, Target("flow", flow_name))


def unknown_qualifier(connection: Connection, schedule: Schedule) -> ScheduleWarning | None:
    """The schedule's version or alias does not exist, so that its starts are refused; None if it does."""
    qualifier = schedule.qualifier
    if not qualifier or is_latest(qualifier):
        return None
    if is_version(qualifier):
        number = version_in(qualifier)
        found = None if number is None else find_version(connection, schedule.flow_id, number)
    else:
        found = find_alias(connection, schedule.flow_id, qualifier)  # type: ignore[assignment]
    if found is not None:
        return None
    target = Target("version" if is_version(qualifier) else "alias", f"{schedule.flow_name}/{qualifier}")
    message = f"{no_version(schedule.flow_name, qualifier)} yet: starts are refused"
    return ScheduleWarning("unknown-qualifier", message, target)


def unreadable_timing(mistakes: str) -> ScheduleWarning:
    """The expression or the time zone cannot be read; `mistakes` names the fields."""
    return ScheduleWarning("unreadable-timing", f"{mistakes}; the schedule starts nothing until this is changed")
