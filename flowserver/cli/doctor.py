"""The command `flowserver doctor`: finds what breaks the invariant, and repairs it, beside a running server."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import Annotated, Final

import typer
from sqlalchemy.exc import DBAPIError

from flowserver.base.clock import Clock, SystemClock, format_instant
from flowserver.base.encryption import Encryption
from flowserver.cli.database_opening import open_ready_database, place_of
from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.options import DatabaseUrl, SecretsKeyFile
from flowserver.cli.secret_keys import read_encryption
from flowserver.operations.function_names import WITHOUT_SERVICE
from flowserver.operations.stuck_executions import OVERDUE_MS
from flowserver.store.encrypted_values import unreadable_values
from flowserver.store.executions.due import due_deadlines, due_timers, orphaned_tasks
from flowserver.store.integrity.damage import find_damage
from flowserver.store.integrity.invariant import Repair
from flowserver.store.integrity.violations import Violation, list_parked, list_violations, repair_execution
from flowserver.store.invocations.parking import list_parked_invocations
from flowserver.store.sql.database import Database
from flowserver.store.sql.errors import reason_of
from flowserver.store.sql.unreadable import is_damage

SHOWN_MAX = 1_000
"""Findings of one kind that are read and shown at a time; repairing goes on in as many rounds as it takes."""

REPAIRS: Final = {
    Repair.PARK: "set the execution aside with this error; it can then be restarted or stopped",
    Repair.DELETE: "delete the rows of its step lists",
    Repair.CLEAR_CALLBACK: "drop the callback, for which no task waits",
}

RepairFlag = Annotated[bool, typer.Option("--repair", help="Repair violations, each execution in one transaction.")]
DeepFlag = Annotated[
    bool,
    typer.Option("--deep", help="Read everything: histories without gaps, every document and definition readable."),
]


def doctor(
    repair: RepairFlag = False,
    deep: DeepFlag = False,
    database_url: DatabaseUrl = None,
    secrets_key_file: SecretsKeyFile = None,
) -> None:
    """Check the database, and repair it.

    Every running execution must have a stored reason to go on. The command prints violations of that rule, parked
    executions and asynchronous invocations, what is overdue, and secrets that none of the server's keys decrypts. It
    reads the database itself. Servers may run on it meanwhile, also with --repair.

    \b
    Exit codes:
      0  healthy: no violation, or none left, and nothing parked
      1  violations, or damage that --deep found
      2  the command, a setting or a variable cannot be understood
      3  there is no such database
      4  the database cannot be reached or opened
      5  nothing but parked executions or invocations, which wait for you; or the schema is of another version
     70  a bug in the command

    \b
    Examples:
      flowserver doctor
      flowserver doctor --repair
      flowserver doctor --deep --database-url sqlite:///backup.db
    """
    with open_ready_database(database_url) as database:
        typer.echo(f"checking {place_of(database)}")
        found = [
            _as_far_as_readable("violations", partial(_repair_all if repair else _show_violations, database)),
            _as_far_as_readable("parked executions", partial(_show_parked, database)),
            _as_far_as_readable("parked invocations", partial(_show_parked_invocations, database)),
            _as_far_as_readable("what is overdue", partial(_show_overdue, database, SystemClock())),
        ]
        sick = None in found or bool(found[0])
        sick = _show_secrets(database, read_encryption(secrets_key_file)) or sick
        if deep:
            sick = _show_damage(database) or sick
        elif None in found:
            typer.echo("flowserver doctor --deep names the tables and rows that are damaged")
        exit_code, verdict = _verdict(sick, sum(each or 0 for each in found[1:3]))
        typer.echo(verdict)
    raise typer.Exit(exit_code)


def _as_far_as_readable(what: str, show: Callable[[], int]) -> int | None:
    """What `show` returns, or None with a line that says so if damage keeps the database from reading it."""
    try:
        return show()
    except DBAPIError as error:
        if not is_damage(error):
            raise
        typer.echo(f"{what}: the database cannot read them: {reason_of(error)}")
        return None


def _verdict(sick: bool, parked: int) -> tuple[ExitCode, str]:
    if sick:
        return ExitCode.FAILED, "sick: see above"
    if parked:
        return ExitCode.CONFLICT, "healthy, but for what is parked above"
    return ExitCode.DONE, "healthy"


def _violations(database: Database) -> list[Violation]:
    return database.run_read(lambda connection: list_violations(connection, SHOWN_MAX))


def _show_violations(database: Database) -> bool:
    found = _violations(database)
    _heading("violations", len(found))
    for violation in found:
        _show_violation(violation)
        typer.echo(f"    with --repair: {REPAIRS[violation.rule.repair]}")
    return bool(found)


def _show_violation(violation: Violation) -> None:
    scope = "" if violation.scope_id is None else f", step list {violation.scope_id}"
    typer.echo(f"  {_title(violation.flow_name, violation.name, violation.execution_id)}{scope}: {violation.rule.name}")
    typer.echo(f"    {violation.rule.meaning} ({violation.detail})")


def _repair_all(database: Database) -> bool:
    """Repair until nothing is left that can be; True if something is."""
    shown: set[tuple[str, int | None, str]] = set()
    while found := _violations(database):
        fresh = [violation for violation in found if _key(violation) not in shown]
        if not fresh:
            return _tell_rest(found)
        for _, of_execution in groupby(fresh, key=lambda violation: violation.execution_id):
            shown.update(_repair_one(database, list(of_execution)))
    if not shown:
        _heading("violations", 0)
    return False


def _repair_one(database: Database, violations: list[Violation]) -> Iterator[tuple[str, int | None, str]]:
    with database.write() as connection:
        repaired = repair_execution(connection, violations)
    for violation in violations:
        _show_violation(violation)
        repair = REPAIRS[violation.rule.repair]
        typer.echo(f"    repaired: {repair}" if repaired else "    changed meanwhile: look again")
        yield _key(violation)


def _key(violation: Violation) -> tuple[str, int | None, str]:
    return violation.execution_id, violation.scope_id, violation.rule.name


def _tell_rest(found: Sequence[Violation]) -> bool:
    typer.echo(f"violations left: {len(found)}; run it again")
    return True


def _show_parked(database: Database) -> int:
    parked = database.run_read(lambda connection: list_parked(connection, SHOWN_MAX))
    _heading("parked executions", len(parked))
    for each in parked:
        typer.echo(f"  {_title(each.flow_name, each.name, each.execution_id)}: {each.error}")
    if parked:
        typer.echo("  once the reason is gone: flowserver executions restart FLOW/NAME")
    return len(parked)


def _show_parked_invocations(database: Database) -> int:
    parked = database.run_read(lambda connection: list_parked_invocations(connection, "", SHOWN_MAX))
    _heading("parked invocations", len(parked))
    for each in parked:
        function = f"{each.service or WITHOUT_SERVICE} {each.function} {each.invocation_id}"
        typer.echo(f"  {function} ({each.status}): {each.parked_error}")
    if parked:
        typer.echo("  once the reason is gone: flowserver invocations restart SERVICE FUNCTION ID")
    return len(parked)


def _show_overdue(database: Database, clock: Clock) -> int:
    """Not a violation: a server acts on it as soon as one runs."""
    before = clock.now_ms() - OVERDUE_MS
    with database.read() as connection:
        timers = due_timers(connection, before, SHOWN_MAX)
        deadlines = due_deadlines(connection, before, SHOWN_MAX)
        orphans = orphaned_tasks(connection, SHOWN_MAX)
    _heading("overdue, for a running server to do", len(timers) + len(deadlines) + len(orphans))
    for timer in timers:
        typer.echo(f"  execution {timer.execution_id}: a wait was over at {_instant(timer.wake_at)}")
    for deadline in deadlines:
        typer.echo(f"  execution {deadline.execution_id}: its time was up at {_instant(deadline.deadline_at)}")
    for orphan in orphans:
        typer.echo(f"  execution {orphan.execution_id}: no server has taken its call, attempt {orphan.attempt}")
    return len(timers) + len(deadlines) + len(orphans)


def _show_damage(database: Database) -> bool:
    number = 0
    typer.echo("damage:")
    with database.read() as connection:
        for damage in find_damage(connection):
            number += 1
            typer.echo(f"  {damage.place}: {damage.problem}")
    if not number:
        typer.echo("  none")
    return number > 0


def _show_secrets(database: Database, encryption: Encryption) -> bool:
    """Whether there are keys, and values that none of them decrypts."""
    found = database.run_read(lambda connection: unreadable_values(connection, encryption))
    if found and not encryption.is_on:
        typer.echo(f"encrypted secrets: {len(found):,}, not checked without their key (--secrets-key-file)")
        return False
    _heading("secrets that no key decrypts", len(found))
    for each in found[:SHOWN_MAX]:
        typer.echo(f"  {each.place}")
    return bool(found)


def _heading(title: str, number: int) -> None:
    typer.echo(f"{title}: {f'{number:,} or more' if number >= SHOWN_MAX else number or 'none'}")


def _title(flow_name: str | None, name: str | None, execution_id: str) -> str:
    return f"execution {execution_id}" if name is None else f"{flow_name}/{name} (execution {execution_id})"


def _instant(instant_ms: int) -> str:
    """The instant, or the raw value of a damaged row."""
    try:
        return format_instant(instant_ms)
    except (ValueError, OverflowError, TypeError, OSError):
        return repr(instant_ms)
