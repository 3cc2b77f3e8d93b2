"""Simulations: many runs of a flow with faults in calls, reports and nodes, checked against properties.

`simulate(text)` runs a definition alone, `simulate_file` one with the mocks and inputs of its test file. Both give a
`Simulation`; its `failures` are the properties that runs broke, each with the shortest such run.
"""

from flowserver.flowtests.simulating.simulation import Failure, Simulation, simulate, simulate_file
from flowserver.flowtests.simulation_settings import SimulationSettings

__all__ = ["Failure", "Simulation", "SimulationSettings", "simulate", "simulate_file"]
