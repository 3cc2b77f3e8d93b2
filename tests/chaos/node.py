"""`python -m tests.chaos.node`: a server as `flowserver serve` runs it, with a clock that can be stepped and few call
slots.
"""

import json
import os
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from flowserver.cli.database_opening import open_database, require_up_to_date
from flowserver.cli.listening import listening
from flowserver.cli.logs import set_up_logs
from flowserver.cli.one_process import serve_until_stopped
from flowserver.cli.two_processes import serve_with_front
from flowserver.server import create_app
from flowserver.settings import Settings
from tests.chaos.clock import ShiftedClock


@dataclass(frozen=True)
class NodeArguments:
    """The arguments of one server process."""

    database_url: str
    port: int
    clock_file: str
    log_file: str
    drain_seconds: float
    places: int
    """Slots for calls under way; they are few, so that calls wait, are distributed and are handed over."""
    processes: int = 1

    def text(self) -> str:
        """One line of JSON."""
        return json.dumps(asdict(self))


def serve(arguments: NodeArguments) -> None:
    """Run a server until a signal arrives."""
    log = os.open(arguments.log_file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.dup2(log, sys.stdout.fileno())
    os.dup2(log, sys.stderr.fileno())
    settings = Settings(
        database_url=arguments.database_url,
        port=arguments.port,
        processes=arguments.processes,
        drain_seconds=arguments.drain_seconds,
    )
    set_up_logs(settings.log_level)
    with open_database(settings.database_url) as database:
        require_up_to_date(database)
    app = create_app(settings, ShiftedClock(Path(arguments.clock_file)))
    app.state.limits = replace(app.state.limits, invocations_in_flight_max=arguments.places)
    with listening(settings.host, settings.port, has_keys=False) as listeners:
        run = serve_until_stopped if settings.processes == 1 else serve_with_front
        run(app, listeners, lambda: None)


if __name__ == "__main__":
    serve(NodeArguments(**json.loads(sys.argv[1])))
