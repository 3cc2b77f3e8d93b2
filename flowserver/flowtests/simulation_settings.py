"""How a flow is simulated: what the attribute `sim` of a flow test file says."""

from dataclasses import dataclass
from typing import Final

from flowserver.flowtests.fault_names import FaultKind
from flowserver.flowtests.properties import Property
from flowserver.flowtests.schemas import Schema

SEED: Final = 1


@dataclass(frozen=True, slots=True)
class SimulationSettings:
    """The settings of one simulation, checked."""

    runs: int | None = None
    """How many runs are made; None: until further ones show nothing new."""
    seed: int = SEED
    faults: frozenset[FaultKind] = frozenset(FaultKind)
    ignored: frozenset[str] = frozenset()
    """Properties that are checked of every flow, but not of this one."""
    sizes: tuple[int, ...] | None = None
    """Sizes of lists in made-up data; None for those that the faults of collections say."""
    input_schema: Schema | None = None
    properties: tuple[Property, ...] = ()
    """Those of the file, beside those of every flow."""
