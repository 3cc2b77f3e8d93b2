"""The results of finished branches and iterations: separate rows, read at the join and deleted with it."""

import random
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import func, select, update

from flowserver.base.json_values import JsonObject, dump_json
from flowserver.base.limits import Limits
from flowserver.engine.commit.batch import Batch
from flowserver.engine.commit.batch_items import Envelope, ReceiptKind
from flowserver.machine.commands import InvokeTask
from flowserver.machine.messages import Continue, Failure, Message, Stop, Success, TaskReplied, TaskReported
from flowserver.machine.state import Status
from flowserver.store.integrity.invariant import violations
from flowserver.store.schema.tables import execution_documents, executions, finished_items, scopes
from flowserver.store.sql.database import Database
from tests.engine.commit.test_batch import Bench, start, tell
from tests.engine.nodes import TOKENS, definition
from tests.store.rows import flow_row, insert_flow
from tests.support.clock import ManualClock

ASK = """{type: task, name: ask, pattern: waitForCallback, resourceArn: 'acs:fc:::services/s/functions/f',
          inputMappings: [{target: it, source: $input.it}], outputMappings: [{target: r, source: $local.r}]}"""
EACH = f"""
    - type: foreach
      name: each
      iterationMapping: {{collection: $.list, item: it}}
      steps:
        - {ASK}
      outputMappings: [{{target: all, source: "$local[*].r"}}]
"""
TWICE = f"""
    - {{type: pass, name: first, outputMappings: [{{target: round, source: 1}}]}}
    - type: foreach
      name: each
      iterationMapping: {{collection: $.list, item: it}}
      steps:
        - {ASK}
      outputMappings: [{{target: all, source: "$local[*].r"}}]
    - {{type: choice, name: again, choices: [{{condition: $.round == 1, goto: second}}], default: {{goto: over}}}}
    - {{type: pass, name: second, outputMappings: [{{target: round, source: 2}}]}}
    - {{type: choice, name: back, default: {{goto: each}}}}
    - {{type: succeed, name: over}}
"""
NESTED = f"""
    - type: foreach
      name: outer
      iterationMapping: {{collection: $.lists, item: list}}
      steps:
        - type: foreach
          name: inner
          iterationMapping: {{collection: $.list, item: it}}
          steps:
            - {ASK}
          outputMappings: [{{target: all, source: "$local[*].r"}}]
      outputMappings: [{{target: all, source: "$local[*].all"}}]
"""
BOTH = f"""
    - type: parallel
      name: both
      branches:
        - steps:
            - {ASK}
        - steps:
            - {ASK.replace("name: ask", "name: ask2")}
      outputMappings: [{{target: all, source: "$local[*].r"}}]
"""

RACE = f"""
    - type: parallel
      name: both
      branches:
        - steps:
            - type: foreach
              name: each
              iterationMapping: {{collection: $.list, item: it}}
              steps:
                - {ASK}
        - steps:
            - type: foreach
              name: bad
              iterationMapping: {{collection: $.bad, item: it}}
              steps:
                - {ASK.replace("name: ask", "name: ask2")}
                - {{type: fail, name: broken, error: Broken}}
"""


class Joins(Bench):
    """Runs batches that load every execution anew, and records the tokens that are awaited."""

    def __init__(self, database: Database, clock: ManualClock) -> None:
        super().__init__(database, clock)
        self.tokens: list[tuple[Any, str]] = []
        """The iteration's item and its token, in the order of the calls."""
        with database.write() as connection:
            for name, steps in {"each": EACH, "nested": NESTED, "both": BOTH, "twice": TWICE, "race": RACE}.items():
                insert_flow(connection, flow_row(name, definition=definition(steps)))

    def begin(self, flow: str, given: JsonObject) -> str:
        """Start it, and answer its calls; then it waits for tokens only."""
        envelope = start(flow, input=given, input_text=dump_json(given))
        self.go_on(envelope)
        return envelope.execution_id

    def go_on(self, *envelopes: Envelope) -> list[ReceiptKind]:
        """A batch of messages, and one with the answers of the calls that it ordered."""
        result = self.run(*envelopes)
        calls = [
            (changes.stored.execution.execution_id, command)
            for changes in result.changes
            for command in changes.commands
            if isinstance(command, InvokeTask)
        ]
        self.tokens += [(call.input.get("it"), call.token or "") for _, call in calls]
        replies = [tell(name, TaskReplied(call.scope_id, call.wait_id, Success({}))) for name, call in calls]
        if replies:
            self.run(*replies)
        return [answer.kind for answer in result.answers]

    def report(self, execution_id: str, token: str, result: Any) -> Envelope:
        claim = TOKENS.read(token)
        assert claim is not None
        outcome = Failure("Bad", "") if result is None else Success({"r": result})
        return tell(execution_id, TaskReported(claim.scope_id, claim.entered_event_id, claim.wait_id, outcome))

    def count(self, table: Any) -> int:
        return self.database.run_read(lambda c: c.execute(select(func.count()).select_from(table)).scalar_one())

    def end_of(self, execution_id: str) -> tuple[Status, Any]:
        query = select(executions.c.status, execution_documents.c.output).join(
            execution_documents, execution_documents.c.execution_id == executions.c.execution_id
        )
        row = self.database.run_read(lambda c: c.execute(query.where(executions.c.execution_id == execution_id)).one())
        return Status(row.status), row.output

    def breaches(self) -> list[Any]:
        return list(self.database.run_read(lambda c: c.execute(select(violations)).all()))


@pytest.fixture
def joins(database: Database, clock: ManualClock) -> Joins:
    return Joins(database, clock)


def test_finished_iterations_are_not_scopes(joins: Joins) -> None:
    name = joins.begin("each", {"list": list(range(20))})
    tokens = joins.tokens[:]
    random.Random(1).shuffle(tokens)
    for number, (item, token) in enumerate(tokens[:-1], start=1):
        assert joins.go_on(joins.report(name, token, item)) == [ReceiptKind.APPLIED]
        assert (joins.count(scopes), joins.count(finished_items)) == (1 + 20 - number, number)
    assert joins.breaches() == []
    item, token = tokens[-1]
    assert joins.go_on(joins.report(name, token, item)) == [ReceiptKind.APPLIED]
    assert joins.end_of(name) == (Status.SUCCEEDED, f'{{"all":{list(range(20))}}}'.replace(" ", ""))
    assert (joins.count(scopes), joins.count(finished_items)) == (0, 0)


@pytest.mark.parametrize("at_once", [1, 3, 40])
def test_results_of_nested_lists_stay_in_order(joins: Joins, at_once: int) -> None:
    lists = [[10, 11, 12], [], [20], [30, 31, 32, 33]]
    name = joins.begin("nested", {"lists": lists})
    tokens = joins.tokens[:]
    random.Random(2).shuffle(tokens)
    while tokens:
        batch, tokens = tokens[:at_once], tokens[at_once:]
        joins.go_on(*(joins.report(name, token, item) for item, token in batch))
        assert joins.breaches() == []
    assert joins.end_of(name) == (Status.SUCCEEDED, f'{{"all":{lists}}}'.replace(" ", ""))
    assert joins.count(finished_items) == 0


def test_branches_are_joined_from_rows_and_memory(joins: Joins) -> None:
    name = joins.begin("both", {})
    (_, first), (_, second) = joins.tokens
    joins.go_on(joins.report(name, second, 2))
    joins.go_on(joins.report(name, first, 1))
    assert joins.end_of(name) == (Status.SUCCEEDED, '{"all":[1,2]}')


def test_the_report_that_leads_to_the_join_is_answered_with_its_own_event(joins: Joins) -> None:
    name = joins.begin("both", {})
    (_, first), (_, second) = joins.tokens
    joins.go_on(joins.report(name, second, 2))
    (receipt,) = joins.run(joins.report(name, first, 1)).answers
    events = joins.event_ids(name)
    assert receipt.event_id < events[-1], "an event before the join's"


def test_a_foreach_that_is_entered_again_starts_without_results(joins: Joins) -> None:
    name = joins.begin("twice", {"list": [5, 6]})
    for count in (2, 4):
        assert (len(joins.tokens), joins.count(finished_items)) == (count, 0)
        for item, token in joins.tokens[-2:]:
            joins.go_on(joins.report(name, token, item * count))
    assert joins.end_of(name) == (Status.SUCCEEDED, '{"round":2,"all":[20,24]}')
    assert joins.count(finished_items) == 0


@pytest.mark.parametrize("message", [Stop(None, None), None])
def test_an_end_deletes_the_finished_results(joins: Joins, message: Message | None) -> None:
    name = joins.begin("each", {"list": [1, 2, 3]})
    joins.go_on(joins.report(name, joins.tokens[0][1], 1))
    joins.go_on(joins.report(name, joins.tokens[1][1], None) if message is None else tell(name, message))
    assert joins.end_of(name)[0] in (Status.STOPPED, Status.FAILED)
    assert (joins.count(scopes), joins.count(finished_items)) == (0, 0)


def test_an_end_in_the_turn_that_loads_results_for_a_join_deletes_them(joins: Joins) -> None:
    name = joins.begin("race", {"list": [1, 2], "bad": [3]})
    tokens = dict(joins.tokens)
    joins.go_on(joins.report(name, tokens[1], 1))
    context = joins.context
    joins.context = replace(context, limits=Limits(turn_steps_max=0))  # a ready join waits for another turn
    joins.go_on(joins.report(name, tokens[2], 2))
    joins.go_on(joins.report(name, tokens[3], 3))
    joins.context = context
    assert joins.go_on(tell(name, Continue())) == [ReceiptKind.APPLIED]
    assert joins.parked(name) is None
    assert joins.end_of(name)[0] is Status.FAILED
    assert (joins.count(scopes), joins.count(finished_items)) == (0, 0)


def test_an_end_by_the_header_alone_deletes_them_too(joins: Joins) -> None:
    name = joins.begin("each", {"list": [1, 2, 3]})
    joins.go_on(joins.report(name, joins.tokens[0][1], 1))
    with joins.database.write() as connection:
        Batch(connection, joins.context, headers_only=True).run([tell(name, Stop(None, None))])
    assert joins.count(finished_items) == 0


@pytest.mark.parametrize("spoilt", [{"local": "[1"}, {"local": "[]"}, {"scope_id": 99}])
def test_a_join_with_damaged_rows_parks_its_execution(joins: Joins, spoilt: dict[str, Any]) -> None:
    name = joins.begin("both", {})
    (_, first), (_, second) = joins.tokens
    joins.go_on(joins.report(name, first, 1))
    joins.change(update(finished_items).values(**spoilt))
    assert joins.go_on(joins.report(name, second, 2)) == [ReceiptKind.PARKED]
    assert "finished item" in (joins.parked(name) or "")
    assert joins.go_on(tell(name, Stop(None, None))) == [ReceiptKind.APPLIED]
    assert joins.count(finished_items) == 0
