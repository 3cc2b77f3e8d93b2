"""The commands `flowserver schedules …`."""

import inspect
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import wraps
from typing import Annotated, Any, Final, Literal
from zoneinfo import ZoneInfo

import typer

from flowserver.cli.document_output import show_document
from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.failures import CommandFailed
from flowserver.cli.remote.command import remote
from flowserver.cli.remote.flows import Limit, Yes, confirm
from flowserver.cli.remote.output import one_line, show_change, show_list, show_one
from flowserver.cli.remote.schedule_description import described, queued, running
from flowserver.cli.remote.session import Session
from flowserver.cli.remote.start import input_of
from flowserver.cli.remote.times import instant_of, names_zone, seconds_of, shown_in_zone
from flowserver.cli.server_options import takes_choices
from flowserver.client.errors import NotFound
from flowserver.client.results import Schedule

schedules = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

START_SECONDS: Final = 5.0
"""How long `trigger` and `backfill` wait to see what starts."""

POLL_SECONDS: Final = 0.1

OverlapName = Literal["Skip", "BufferOne", "BufferAll", "CancelOther", "TerminateOther", "AllowAll"]

Path = Annotated[str, typer.Argument(metavar="SCHEDULE", help="The schedule, written FLOW/NAME.")]
OfFlow = Annotated[str | None, typer.Option("--flow", metavar="FLOW", help="Only schedules of this flow.")]
Cron = Annotated[
    str | None, typer.Option("--cron", help="Six fields: second, minute, hour, day of month, month, day of week.")
]
Every = Annotated[str | None, typer.Option("--every", metavar="DURATION", help="Whole minutes, such as 30m or 6h.")]
Timezone = Annotated[str | None, typer.Option("--timezone", metavar="ZONE", help="Time zone of --cron: Europe/Berlin.")]


def _overlap(absent: str) -> Any:
    """The option --overlap; `absent` says what applies without it."""
    policies = "Skip, BufferOne, BufferAll, CancelOther, TerminateOther or AllowAll"
    return typer.Option(
        "--overlap",
        metavar="POLICY",
        case_sensitive=False,
        help=f"What a tick does while an execution runs: {policies}. {absent}",
    )


Overlap = Annotated[OverlapName | None, _overlap("Default of a new schedule: AllowAll.")]
TriggerOverlap = Annotated[OverlapName | None, _overlap("Default: the schedule's own.")]
BackfillOverlap = Annotated[OverlapName | None, _overlap("Default: BufferAll, one after the other.")]
CatchUp = Annotated[
    str | None, typer.Option("--catch-up", metavar="DURATION", help="How late a tick may start: 10m, 1h.")
]
Payload = Annotated[
    str | None,
    typer.Option(
        "--payload",
        metavar="JSON|@FILE|-",
        help="`$input.payload` of the executions; their input also has triggerTime and triggerName.",
    ),
]
Qualifier = Annotated[
    str | None,
    typer.Option(
        "--qualifier", metavar="VERSION|ALIAS", help="What executions run: a version, or the choice of an alias."
    ),
]
Description = Annotated[str | None, typer.Option("--description", help="What it is for.")]
PauseOnFailure = Annotated[
    bool | None, typer.Option("--pause-on-failure/--no-pause-on-failure", help="Pause when an execution fails.")
]
Note = Annotated[str, typer.Option("--note", help="Why; `schedules list` shows it.")]
From = Annotated[
    str,
    typer.Option(
        "--from",
        metavar="AGE",
        help="Start of the range: an age (7d), `today`, or an instant; without an offset, in the schedule's zone.",
    ),
]
To = Annotated[str, typer.Option("--to", metavar="AGE", help="End of the range; as for --from.")]


@schedules.callback()
@takes_choices
def _schedules() -> None:
    """Start executions of flows at set times."""


@schedules.command("list")
@remote
def list_schedules(session: Session, flow: OfFlow = None, limit: Limit = 1_000) -> None:
    """List schedules with their next ticks.

    \b
    Example:
      flowserver schedules list --flow etl
    """
    now = datetime.now(UTC)
    found = session.client.schedules(None if flow is None else session.flow(flow))
    columns = {
        "SCHEDULE": lambda one: one.path,
        "WHEN": lambda one: one.cron_expression,
        "ZONE": lambda one: one.time_zone,
        "NEXT": lambda one: shown_in_zone(one.next_time, now, one.time_zone) if one.enabled else "paused",
        "LAST MISSED": lambda one: (
            shown_in_zone(one.last_missed["time"], now, one.time_zone) if one.last_missed else ""
        ),
        "STARTED": lambda one: str(one.started),
        "WAITING": lambda one: str(one.waiting),
        "MISSED": lambda one: str(one.missed),
        "SKIPPED": lambda one: str(one.skipped),
        "NOTE": lambda one: one_line(one.note, 40),
    }
    show_list(session, found, columns, lambda one: one.path, "There are no schedules.", limit)


@schedules.command("get")
@remote
def get_schedule(session: Session, schedule: Path) -> None:
    """Show a schedule, ten next ticks, ten last executions.

    \b
    Example:
      flowserver schedules get etl/nightly
    """
    _show(session, session.client.get_schedule(*_named(session, schedule)))


def _fields(
    *,
    cron: Cron = None,
    every: Every = None,
    timezone: Timezone = None,
    overlap: Overlap = None,
    catch_up: CatchUp = None,
    payload: Payload = None,
    qualifier: Qualifier = None,
    description: Description = None,
    pause_on_failure: PauseOnFailure = None,
) -> dict[str, Any]:
    """What is given of a schedule, as the API names it."""
    if cron is not None and every is not None:
        raise CommandFailed("--cron and --every exclude each other", ExitCode.USAGE)
    given = {
        "cronExpression": cron if every is None else every_expression(every),
        "timeZone": timezone,
        "overlap": overlap,
        "catchUpSeconds": None if catch_up is None else int(seconds_of(catch_up, "--catch-up")),
        "payload": input_of(payload, "--payload"),
        "qualifier": qualifier,
        "description": description,
        "pauseOnFailure": pause_on_failure,
    }
    return {name: value for name, value in given.items() if value is not None}


def _with_fields(command: Callable[[Session, str, dict[str, Any]], None]) -> Callable[..., None]:
    """Turn `command(session, schedule, fields)` into a command with an option for every field."""

    @wraps(command)
    def with_options(session: Session, schedule: str, **options: Any) -> None:
        command(session, schedule, _fields(**options))

    own = list(inspect.signature(command).parameters.values())[:2]
    options = inspect.signature(_fields).parameters.values()
    with_options.__signature__ = inspect.Signature([*own, *options])  # type: ignore[attr-defined]
    return with_options


@schedules.command("create")
@remote
@_with_fields
def create_schedule(session: Session, schedule: Path, fields: dict[str, Any]) -> None:
    """Create a schedule.

    \b
    Examples:
      flowserver schedules create etl/nightly --cron '0 30 2 * * ?' --timezone Europe/Berlin --overlap Skip
      flowserver schedules create poll/often --every 5m --payload '{"source": "shop"}'
    """
    if "cronExpression" not in fields:
        raise CommandFailed(f"give --cron or --every: {session.command} {schedule} --every 1h", ExitCode.USAGE)
    _show(session, session.client.create_schedule(*_named(session, schedule), fields))


@schedules.command("update")
@remote
@_with_fields
def update_schedule(session: Session, schedule: Path, fields: dict[str, Any]) -> None:
    """Change the given fields of a schedule.

    \b
    Example:
      flowserver schedules update etl/nightly --cron '0 30 3 * * ?'
    """
    _show(session, session.client.update_schedule(*_named(session, schedule), fields))


@schedules.command("pause")
@remote
def pause_schedule(session: Session, schedule: Path, note: Note = "") -> None:
    """Pause a schedule: further ticks start nothing.

    \b
    Example:
      flowserver schedules pause etl/nightly --note 'the shop is being moved'
    """
    _show(session, session.client.pause_schedule(*_named(session, schedule), note), "paused")


@schedules.command("resume")
@remote
def resume_schedule(session: Session, schedule: Path, note: Note = "") -> None:
    """Resume a schedule. Ticks that passed meanwhile do not run.

    \b
    Example:
      flowserver schedules resume etl/nightly
    """
    _show(session, session.client.resume_schedule(*_named(session, schedule), note), "resumed")


@schedules.command("trigger")
@remote
def trigger_schedule(session: Session, schedule: Path, overlap: TriggerOverlap = None) -> None:
    """Start an execution of a schedule now, paused or not.

    Its name is printed, and a note says whether it has started or is queued.

    \b
    Example:
      flowserver schedules trigger etl/nightly
    """
    flow, name = _named(session, schedule)
    before = session.client.get_schedule(flow, name)
    triggered = session.client.trigger_schedule(flow, name, overlap).document
    path = f"{triggered['flowName']}/{triggered['executionName']}"
    waits = _queued_trigger(session, before, triggered["executionName"], overlap)
    if session.output in ("json", "yaml"):
        show_document(session.output, {**triggered, "started": waits is None})
    else:
        typer.echo(path)
        said = "Started." if waits is None else f"{waits[0].upper()}{waits[1:]}; not started yet."
        session.note(f"{said} Watch it{'' if waits is None else ' then'}: flowserver watch {path}")


def _queued_trigger(session: Session, before: Schedule, execution: str, overlap: str | None) -> str | None:
    """Behind what a triggered execution is queued, None if it has started; raises CommandFailed if it was skipped."""
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            session.client.get_execution(before.flow_name, execution)
        except NotFound:
            pass
        else:
            return None
        now = session.client.get_schedule(before.flow_name, before.name)
        if now.skipped > before.skipped:
            raise CommandFailed(f"skipped: an execution of {now.path} still runs; see --overlap", ExitCode.CONFLICT)
        if _is_queued(now, overlap or before.overlap) or time.monotonic() > end:
            return queued(now)
        time.sleep(POLL_SECONDS)


def _decided(session: Session, flow: str, name: str, overlap: str) -> Schedule:
    """The schedule when none of its starts waits, or they wait for an execution; as it is after START_SECONDS."""
    end = time.monotonic() + START_SECONDS
    while True:
        now = session.client.get_schedule(flow, name)
        if not now.waiting or _is_queued(now, overlap) or time.monotonic() > end:
            return now
        time.sleep(POLL_SECONDS)


def _is_queued(schedule: Schedule, overlap: str) -> bool:
    """Whether a start certainly waits for an execution that runs; under other policies that is decided later."""
    return overlap == "BufferAll" and bool(schedule.waiting and running(schedule))


@schedules.command("backfill")
@remote
def backfill_schedule(
    session: Session, schedule: Path, start: From, end: To = "0s", overlap: BackfillOverlap = None
) -> None:
    """Run the ticks of a range that has passed.

    A tick that has an execution already is skipped. The command prints how many ticks have started and how many are
    queued.

    \b
    Examples:
      flowserver schedules backfill etl/nightly --from 7d --to 1d
      flowserver schedules backfill etl/nightly --from 2026-01-02 --to 2026-01-05
    """
    now = datetime.now(UTC)
    flow, name = _named(session, schedule)
    before = session.client.get_schedule(flow, name)
    zone = before.time_zone
    begin, until = (
        instant_of(text, option, now, ZoneInfo(zone)) for text, option in ((start, "--from"), (end, "--to"))
    )
    if not (names_zone(start) and names_zone(end)):
        session.note(f"In the schedule's zone, {zone}: from {begin} to {until}.")
    ticks = session.client.backfill_schedule(flow, name, begin, until, overlap).document["ticks"]
    now_is = _decided(session, flow, name, overlap or "BufferAll")
    skipped = min(ticks, now_is.skipped - before.skipped)
    started = min(ticks - skipped, now_is.started - before.started)
    if session.output in ("json", "yaml"):
        counts = {"started": started, "skipped": skipped, "queued": ticks - started - skipped}
        show_document(session.output, {"ticks": ticks, **counts})
        return
    counted = {"started": started, "skipped": skipped, queued(now_is): ticks - started - skipped}
    said = ", ".join(f"{count} {what}" for what, count in counted.items() if count)
    typer.echo(f"{ticks} tick{'' if ticks == 1 else 's'} of {schedule}: {said}")


@schedules.command("delete")
@remote
def delete_schedule(session: Session, schedule: Path, yes: Yes = False) -> None:
    """Delete a schedule. Its executions continue.

    \b
    Example:
      flowserver schedules delete etl/nightly --yes
    """
    confirm(f"Delete the schedule {schedule}?", yes)
    session.client.delete_schedule(*_named(session, schedule))
    show_change(session, "deleted", schedule)


def _named(session: Session, text: str) -> tuple[str, str]:
    return session.named(text, "a schedule")


def every_expression(duration: str) -> str:
    """The expression of the language for `30m` or `6h`; raises CommandFailed unless it is whole minutes."""
    minutes, rest = divmod(seconds_of(duration, "--every"), 60)
    if rest or not minutes:
        raise CommandFailed(f"--every takes whole minutes, not {duration!r}", ExitCode.USAGE)
    return f"@every {int(minutes)}m"


def _show(session: Session, schedule: Schedule, verb: str | None = None) -> None:
    for found in schedule.warnings:
        session.note(f"warning[{found['id']}]: {found['message']}")
    if verb is not None:
        show_one(session, schedule, schedule.path, f"{verb} {schedule.path}")
        return
    show_one(session, schedule, schedule.path, described(schedule, datetime.now(UTC)))
