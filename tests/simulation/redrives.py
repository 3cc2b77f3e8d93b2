"""Clients that redrive: as the server plans it, with the same definition or a published one, from any step.

Every flow has a published version that runs as its own definition does, but whose lists and steps have other numbers.
"""

from random import Random

from sqlalchemy import Connection

from flowserver.base.json_values import JsonObject, dump_json
from flowserver.base.limits import Limits
from flowserver.base.task_tokens import TaskTokens
from flowserver.engine.commit.batch_items import Envelope
from flowserver.machine.messages import Redrive
from flowserver.operations.redrive_plans import RedriveWish, plan_redrive
from flowserver.store.executions.redriving import RedriveRequest
from flowserver.store.flows import insert_flow, put_definition
from flowserver.store.versions.versions import publish_version
from tests.simulation.case import NOW_MS, Plan, flow_row
from tests.simulation.shared_database import SharedDatabase
from tests.simulation.witness import Run

AHEAD: JsonObject = {
    "type": "parallel",
    "name": "ahead",
    "branches": [{"steps": [{"type": "pass", "name": f"ahead{number}"}]} for number in range(2)],
}
"""A step that changes no data."""

PLANNED = 0.3
"""The share of redrives that ask for something else than the definition and the steps that are open."""


def insert_flows(connection: Connection, plan: Plan) -> None:
    """Insert the flows of a world, each with its version 1."""
    for name, definition in plan.definitions.items():
        on_failure = plan.on_failure(name)
        assert insert_flow(connection, flow_row(name, dump_json(definition), on_failure))
        other = {**definition, "steps": [AHEAD, *definition["steps"]]}
        version = flow_row(name, dump_json(other), on_failure)
        put_definition(connection, version)
        publish_version(connection, version, "", NOW_MS)


class Redrives:
    """Makes the messages of redrives."""

    def __init__(self, database: SharedDatabase, random: Random, limits: Limits, tokens: TaskTokens) -> None:
        self.database = database
        self._random = random
        self._limits = limits
        self._tokens = tokens

    def envelope(self, run: Run, token: str) -> Envelope:
        """A redrive of an execution that has ended or waits for one, made for its present state."""
        if self._random.random() < PLANNED:
            planned = self._planned(run, token)
            if planned is not None:
                return planned
        count = run.execution.redrive_count
        request = RedriveRequest(run.definition_id, len(run.events), token, count)
        return Envelope(run.execution.execution_id, Redrive(), redrive=request)

    def _planned(self, run: Run, token: str) -> Envelope | None:
        """What the server plans for a random wish; None if that is refused."""
        entered = sorted({each.step_name for each in run.events if each.step_name})
        wish = RedriveWish(
            from_step=self._random.choice([None, *entered]),
            definition=self._random.choice(["same", "current", 1]),
            client_token=token,
        )
        flow = flow_row(
            run.execution.flow_name, dump_json(run.case.definition), run.case.plan.on_failure(run.execution.flow_name)
        )
        with self.database.read() as connection:
            execution_id, limits, tokens = run.execution.execution_id, self._limits, self._tokens
            plan = plan_redrive(connection, execution_id, flow, wish, limits, tokens, counts_kept=False)
        if plan is None or plan.reasons or plan.is_repeated:
            return None
        return Envelope(execution_id, plan.message, redrive=plan.request)
