"""Random flows, those of the server's simulation: crashes change nothing, runs repeat, recorded tests repeat them."""

from collections import Counter
from pathlib import Path
from random import Random

import pytest
import yaml

from flowserver.base.limits import Limits
from flowserver.flowtests.cases import Crash, Source, TestFile
from flowserver.flowtests.fault_names import FaultKind
from flowserver.flowtests.loading import Loader
from flowserver.flowtests.outcomes import Rules, run_case
from flowserver.flowtests.simulating.faults import Fault
from flowserver.flowtests.simulating.recorded_case import NotRecordable, recorded_case
from flowserver.flowtests.simulating.runs import Script, SimulatedRun, Simulator
from flowserver.flowtests.simulating.simulation import Failure, Simulation, file_of
from flowserver.flowtests.simulation_settings import SimulationSettings
from flowserver.language.diagnostics import Severity
from flowserver.language.parser import parse
from flowserver.machine.state import Status
from tests.simulation.generator import Generator

SEEDS = range(60)
RULES = Rules(Limits())


def simulated(seed: int, folder: Path = Path()) -> tuple[TestFile, Simulator]:
    text = yaml.safe_dump(Generator(Random(seed)).definition())
    source = Source(folder / "flow.yaml", text, parse(text, Limits()).flow)
    file = file_of(source)
    return file, Simulator(file, RULES, SimulationSettings())


def outcome(run: SimulatedRun) -> tuple[object, ...]:
    """What a flow comes to. Which branches get how far until one of them fails depends on their order."""
    execution = run.record.execution
    done = sorted(run.record.entered) if execution.status is Status.SUCCEEDED else []
    return execution.status, execution.error, done, run.record.endless


def keys_by_path(run: SimulatedRun) -> Counter[str]:
    """How many idempotency keys each step's calls have. The keys depend on the order of branches."""
    return Counter(path for path, _ in {(call.path, call.key) for call in run.record.calls})


def crashes_of(run: SimulatedRun, random: Random) -> tuple[Fault, ...]:
    places = [place for _, place, _ in run.calls.answers if place.call == 1]
    chosen = random.sample(places, min(3, len(places)))
    return tuple(Fault(FaultKind.CRASH, place, random.choice([*Crash])) for place in chosen)


@pytest.mark.parametrize("part", range(3))
def test_crashes_change_nothing_but_the_number_of_calls(part: int) -> None:
    repeated = 0
    for seed in SEEDS[part::3]:
        _, simulator = simulated(seed)
        plain = simulator.run(Script())
        faults = crashes_of(plain, Random(seed))
        crashed = simulator.run(Script(faults))
        if plain.cut_short or plain.record.endless:
            continue
        assert outcome(crashed) == outcome(plain), (seed, faults)
        if plain.record.execution.status is Status.SUCCEEDED:
            assert keys_by_path(crashed) == keys_by_path(plain), seed
        repeated += len(crashed.record.calls) - len(plain.record.calls)
    assert repeated > 5


def test_equal_scripts_make_equal_runs() -> None:
    for seed in SEEDS[::4]:
        _, simulator = simulated(seed)
        script = Script((), "d", 0.4, "d", (0, 1, 3))
        one, other = simulator.run(script), simulated(seed)[1].run(script)
        assert outcome(one) == outcome(other)
        assert (one.record.events, one.record.took_ms, one.calls.faults) == (
            other.record.events,
            other.record.took_ms,
            other.calls.faults,
        )
        assert one.record.execution.output == other.record.execution.output
        again = simulator.run(Script(tuple(dict.fromkeys(one.calls.faults)), "d", sizes=(0, 1, 3)))
        assert outcome(again) == outcome(one)


def test_recorded_tests_repeat_random_runs(tmp_path: Path) -> None:
    recorded = 0
    for seed in SEEDS:
        file, simulator = simulated(seed, tmp_path)
        run = simulator.run(Script((), "d", 0.3, "d", (0, 1, 2)))
        if run.cut_short or run.record.endless:
            continue
        failure = Failure("p", Severity.ERROR, "", None, None, {}, run, (), 0, 1)
        file.source.file.write_text(file.source.text)
        try:
            test = recorded_case(Simulation(file, 1, 1, (), {}, {}, 0), failure, tmp_path)
        except NotRecordable:
            continue
        text = yaml.safe_dump({"flow": "flow.yaml", "tests": [test]}, sort_keys=False)
        loaded = Loader(Limits()).load(tmp_path / "recorded.flowtest.yaml", text)
        repeated = run_case(loaded, loaded.cases[0], RULES)
        assert repeated.failures == (), (seed, repeated.failures)
        assert repeated.warnings == ()
        record, again = run.record, repeated.record
        assert (record.entered, record.took_ms, record.events) == (again.entered, again.took_ms, again.events), seed
        assert [call.path for call in record.calls] == [call.path for call in again.calls]
        assert (record.execution.status, record.execution.error) == (again.execution.status, again.execution.error)
        recorded += record.execution.status is not Status.RUNNING
    assert recorded > 40
