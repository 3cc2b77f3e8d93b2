"""The command `flowserver sim`: many runs of a flow with faults, in virtual time and without a server."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from flowserver.base.json_values import JsonObject
from flowserver.base.limits import Limits
from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.finding_output import STDIN, Files, Strict, names_in, read_definition
from flowserver.cli.options import LenientFlag, LimitsFlag, MissingSourceFlag, read_language_settings
from flowserver.cli.recorded_tests import without_known, write_tests
from flowserver.cli.server_options import formatted
from flowserver.cli.simulation_output import SimulatedFile, show
from flowserver.flowtests.cases import Source, TestFile
from flowserver.flowtests.fault_names import FaultKind
from flowserver.flowtests.file_names import SUFFIX
from flowserver.flowtests.junit import simulations_xml
from flowserver.flowtests.loading import Loader
from flowserver.flowtests.outcomes import Rules
from flowserver.flowtests.simulating.recorded_case import NotRecordable, recorded_case
from flowserver.flowtests.simulating.simulation import Simulation, file_of, repeat_run, simulate_file
from flowserver.flowtests.simulation_settings import SimulationSettings
from flowserver.language.diagnostics import DefinitionRejected, Severity
from flowserver.language.parser import parse

Runs = Annotated[
    int | None,
    typer.Option("--runs", metavar="N", min=1, help="How many runs are made; else until they show nothing new."),
]
Seed = Annotated[int | None, typer.Option("--seed", metavar="N", min=0, help="What the runs are drawn from.")]
OneRun = Annotated[
    int | None, typer.Option("--run", metavar="N", min=0, help="Repeat the run of this number, and tell its story.")
]
Faults = Annotated[
    list[str] | None,
    typer.Option("--fault", metavar="NAME", help="Only faults of this kind. May be given several times."),
]
RecordFile = Annotated[
    Path | None,
    typer.Option("--record", metavar="FILE", help="Add a test to FILE, new or not, for each property that is broken."),
]
JunitFile = Annotated[Path | None, typer.Option("--junitxml", metavar="FILE", help="Write a JUnit report to FILE.")]


@formatted
def sim(
    output: str,
    files: Files,
    runs: Runs = None,
    seed: Seed = None,
    run: OneRun = None,
    faults: Faults = None,
    record: RecordFile = None,
    junit_file: JunitFile = None,
    limits: LimitsFlag = None,
    lenient: LenientFlag = None,
    missing_source: MissingSourceFlag = None,
    strict: Strict = False,
) -> None:
    """Run flows many times with faults, without a server.

    Time is virtual. Calls fail, hang or answer late, reports are missing or come twice, nodes crash, lists are empty
    or large. Every run has to end, none may fail by a mistake of the definition, and steps that undo work run if that
    is needed. A test file beside the flow, `order.flowtest.yaml` for `order.yaml`, has the replies of its calls,
    inputs, and further properties under `sim`. Of runs that break a property the shortest is shown, step by step.

    Runs are drawn from a seed: the same command finds the same. With --record such a run becomes a test, which
    `flowserver test` fails until the flow is right.

    Exit code 0: no run breaks a property. 1: one does, or there are warnings with --strict. 2: a file has mistakes.
    3: a file cannot be read.

    \b
    Examples:
      flowserver sim order.yaml
      flowserver sim order.flowtest.yaml --runs 10000 --seed 7
      flowserver sim order.yaml --run 23
      flowserver sim order.yaml --record order.flowtest.yaml
      flowserver sim flows/ --fault crash-at-commit --fault 5xx
    """
    settings = read_language_settings({"limits": limits, "lenient": lenient, "missing_source": missing_source})
    rules = Rules(Limits.of(settings.limits), settings.missing_source)
    chosen = _Options(rules, Loader(rules.limits, lenient=settings.lenient), settings.lenient, runs, seed, faults, run)
    names = list(dict.fromkeys(map(_with_tests, names_in(files))))
    simulated = [found for name in names if (found := _simulate(name, chosen)) is not None]
    if junit_file is not None:
        done = [each.simulation for each in simulated if each.simulation is not None]
        rejected = {each.name: each.mistakes for each in simulated if each.rejected is not None}
        junit_file.write_text(simulations_xml(done, rejected), "utf-8")
    show(simulated, output, run)
    if record is not None:
        for each in simulated:
            if each.simulation is not None:
                _record(record, each.simulation)
    _end(simulated, len(names), strict=strict)


@dataclass(frozen=True, slots=True)
class _Options:
    """What the command was given."""

    rules: Rules
    loader: Loader
    lenient: bool
    runs: int | None
    seed: int | None
    faults: list[str] | None
    run: int | None

    def settings_of(self, file: TestFile) -> SimulationSettings:
        """Those of the file, with those of the options in their place."""
        settings = file.simulation or SimulationSettings()
        if self.runs is not None:
            settings = replace(settings, runs=self.runs)
        if self.seed is not None:
            settings = replace(settings, seed=self.seed)
        if self.faults:
            settings = replace(settings, faults=frozenset(map(_fault, self.faults)))
        return settings


def _record(file: Path, simulation: Simulation) -> None:
    tests: list[JsonObject] = []
    for failure in simulation.failures:
        try:
            tests.append(recorded_case(simulation, failure, file.parent))
        except NotRecordable as error:
            typer.echo(f"flowserver: {failure.property} is not recorded: {error}", err=True)
    new = without_known(file, tests)
    if new:
        write_tests(file, simulation.file, new)
        typer.echo(
            f"recorded in {typer.format_filename(file)}: {', '.join(str(test['name']) for test in new)}", err=True
        )


def _fault(name: str) -> FaultKind:
    if name not in list(FaultKind):
        raise typer.BadParameter(f"{name!r} is no fault; there are {', '.join(FaultKind)}", param_hint="--fault")
    return FaultKind(name)


def _with_tests(name: str) -> str:
    """The test file beside a flow, if there is one: both names mean one simulation."""
    beside = Path(name).with_suffix(SUFFIX)
    has_tests = name != STDIN and not name.endswith(SUFFIX) and beside.is_file()
    return str(beside) if has_tests else name


def _simulate(name: str, options: _Options) -> SimulatedFile | None:
    """The simulation of a flow, or of a test file; None, after a line on stderr, if it cannot be read."""
    text = read_definition(name)
    if text is None:
        return None
    try:
        is_test = name.endswith(SUFFIX)
        file = options.loader.load(Path(name), text) if is_test else _alone(name, text, options)
    except DefinitionRejected as rejected:
        return SimulatedFile(name, text, rejected)
    settings = options.settings_of(file)
    if options.run is not None:
        return SimulatedFile(name, text, None, repeat_run(file, options.rules, settings, options.run))
    return SimulatedFile(name, text, None, simulate_file(file, options.rules, settings))


def _alone(name: str, text: str, options: _Options) -> TestFile:
    flow = parse(text, options.rules.limits, allow_ref_tags=True, lenient=options.lenient).flow
    return file_of(Source(Path(name), text, flow))


def _end(simulated: list[SimulatedFile], wanted: int, *, strict: bool) -> None:
    if any(each.rejected is not None for each in simulated):
        raise typer.Exit(ExitCode.USAGE)
    if len(simulated) < wanted:
        raise typer.Exit(ExitCode.NOT_FOUND)
    failures = [failure for each in simulated if each.simulation for failure in each.simulation.failures]
    if any(strict or failure.severity is Severity.ERROR for failure in failures):
        raise typer.Exit(ExitCode.FAILED)
