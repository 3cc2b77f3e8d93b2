"""The command `flowserver serve`: settings, database, port, and then the server until a signal stops it."""

import gc
import logging
import platform
import sys
from collections.abc import Callable
from typing import Final, NamedTuple

import typer
from sqlalchemy.exc import DBAPIError

from flowserver import __version__
from flowserver.api.bounded_server import raise_file_limit
from flowserver.api.keyless_access import is_loopback
from flowserver.base.interpreter import is_optimised
from flowserver.base.limits import Limits
from flowserver.base.urls import base_url
from flowserver.cli.database_opening import bring_up_to_date, is_new, open_database, place_of, require_up_to_date
from flowserver.cli.listening import listening
from flowserver.cli.logs import set_up_logs
from flowserver.cli.one_process import serve_until_stopped
from flowserver.cli.options import with_settings
from flowserver.cli.secret_keys import warning_of_key_file
from flowserver.cli.sign_in_links import add_sign_in_link
from flowserver.cli.two_processes import serve_with_front
from flowserver.concurrency.background_throttle import SWITCH_SECONDS
from flowserver.operations.sign_in_links import NewSignInLink
from flowserver.server import create_app
from flowserver.settings import Settings
from flowserver.store.access_keys import Admission, read_admission
from flowserver.store.sql.database import Database
from flowserver.store.sql.errors import reason_of

log = logging.getLogger(__name__)

GARBAGE_THRESHOLD = 20_000
"""New containers between two looks at the youngest; some megabytes at most, should all be cycles."""


_ACCESS: Final = {
    Admission.OPEN: "open to every program on this machine; to close it: flowserver keys create",
    Admission.KEYED: "with keys only",
    Admission.LOST: "closed, because there were keys and all are gone; to let callers in: flowserver keys create",
}
assert set(_ACCESS) == set(Admission)

_SECRETS: Final = "encrypted with the secrets key: from now on this database needs it at every start"

_SLOW_BUILD: Final = (
    "built without optimisation; builds of Debian, python.org or uv do the same work with a fifth less processor time"
)


@with_settings
def serve(settings: Settings) -> None:
    """Run the server until Ctrl-C or SIGTERM.

    Every setting is a flag, the environment variable that its description names, or a line of the settings file;
    the first of these wins.

    \b
    Examples:
      flowserver serve
      flowserver serve --port 0 --database-url sqlite:///demo.db
      FLOWSERVER_PORT=9000 flowserver serve --limits cloud
      flowserver serve --settings settings.yaml
    """
    set_up_logs(settings.log_level, settings.log_format, has_access_log=settings.access_log)
    if (warning := warning_of_key_file(settings.secrets_key_file)) is not None:
        log.warning("%s", warning)
    say = log.info if settings.log_format == "json" else typer.echo
    app = create_app(settings)
    raise_file_limit(app.state.limits)
    with open_database(settings.database_url) as database:
        if is_new(database):
            with listening(settings.host, settings.port, has_keys=True):
                pass  # where the port cannot be had, no new database stays behind
        admission = _prepare(database, settings.migrate, say)
        place = place_of(database)
        first = _link_for_first_key(database, app.state.limits, admission, settings)
    _collect_garbage_seldom()
    sys.setswitchinterval(SWITCH_SECONDS)
    with listening(settings.host, settings.port, admission is not Admission.OPEN) as listeners:
        app.state.is_wide = not all(is_loopback(listener.getsockname()[0]) for listener in listeners)
        url = base_url(*listeners[0].getsockname()[:2])
        run = serve_until_stopped if settings.processes == 1 else serve_with_front
        announce = _log_start if settings.log_format == "json" else _announce
        link = None if first is None else first.url(url)
        start = _Start(url, place, admission, bool(settings.encryption_keys()), settings.console, link)
        run(app, listeners, lambda: announce(start))


def _prepare(database: Database, migrate: bool | None, say: Callable[[str], None]) -> Admission:
    """Bring the tables up to date and say each change; returns who may call."""
    if is_new(database) if migrate is None else migrate:
        applied, backup = bring_up_to_date(database)
        if backup is not None:
            say(f"backed up {place_of(database)} to {backup}")
        if applied:
            say(f"migrated {place_of(database)} to revision {applied[-1]} ({len(applied)} applied)")
    require_up_to_date(database)
    return database.run_read(read_admission)


def _link_for_first_key(
    database: Database, limits: Limits, admission: Admission, settings: Settings
) -> NewSignInLink | None:
    """A link that makes the first key; None if there is one, or nothing that shows the link: logs must not hold it.

    None, too, if the database takes no changes now, as with a full disk: the server starts all the same.
    """
    is_shown = settings.console and settings.log_format != "json" and sys.stderr.isatty()
    if admission is not Admission.OPEN or not is_shown:
        return None
    try:
        return add_sign_in_link(database, limits, is_first=True)
    except DBAPIError as error:
        log.warning("there is no sign-in link: the database refuses: %s", reason_of(error))
        return None


def _collect_garbage_seldom() -> None:
    """Collect garbage seldom: requests and turns leave almost no cycles, and imported modules stay for good."""
    gc.freeze()
    gc.set_threshold(GARBAGE_THRESHOLD, 20, 20)


class _Start(NamedTuple):
    """What a server says of itself once it serves."""

    url: str
    place: str
    admission: Admission
    has_secrets_key: bool
    has_console: bool
    link: str | None


def _log_start(start: _Start) -> None:
    assert start.link is None
    fields = {
        "version": __version__,
        "url": start.url,
        "data": start.place,
        "access": _ACCESS[start.admission],
        "secrets": _SECRETS if start.has_secrets_key else "no key",
        "console": start.has_console,
    }
    log.info("flowserver %(version)s is ready at %(url)s", fields)


def _announce(start: _Start) -> None:
    typer.echo(f"flowserver {__version__} is ready (Ctrl-C stops it)")
    typer.echo(f"  API     {start.url}  (for SDKs; REST is under /v1)")
    if start.has_console:
        typer.echo(f"  Console {start.url}/  (in a browser)")
    typer.echo(f"  Docs    {start.url}/docs")
    typer.echo(f"  Data    {start.place}")
    if start.has_secrets_key:
        typer.echo(f"  Secrets {_SECRETS}")
    typer.echo(f"  Access  {_ACCESS[start.admission]}")
    if start.link is not None:
        typer.echo(f"  Sign in {start.link}", err=True)
        typer.echo("          (once, within 15 minutes: it makes the first access key)", err=True)
    if not is_optimised():
        typer.echo(f"  Python  {platform.python_version()}, {_SLOW_BUILD}")
