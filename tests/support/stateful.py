"""State machines of Hypothesis over a database: the same walks each time, of a length that a test can afford."""

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from flowserver.store.sql.database import Database


def walk(machine: type[RuleBasedStateMachine], database: Database, *, walks: int, steps: int) -> None:
    """Run this many walks of this many steps; the machine finds the database in its attribute `database`."""
    over_it = type(machine.__name__, (machine,), {"database": database})
    how = settings(
        max_examples=walks,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        derandomize=True,
        phases=[Phase.generate],
    )
    run_state_machine_as_test(over_it, settings=how)  # type: ignore[no-untyped-call]
