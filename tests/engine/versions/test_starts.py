"""Starts of versions, on both databases: the version that runs, repeated starts, and the cost of an ordinary start."""

import asyncio

import pytest
from sqlalchemy import text

from flowserver.base.errors import FlowAliasNotExists, FlowVersionNotExists
from flowserver.machine.versions.routing import Route
from flowserver.operations.flows import FlowChange
from flowserver.store.executions.listing_of_flow import ExecutionFilter
from flowserver.store.executions.new_executions import NewExecution
from flowserver.store.executions.shown_executions import ExecutionRow
from tests.engine.nodes import FragileDatabase, Node, definition, running_node
from tests.support.clock import ManualClock

PASS = "- {type: pass, name: p, outputMappings: [{target: version, source: %s}]}"
WAIT = "- {type: wait, name: w, duration: 3600}"


async def publish(node: Node, *steps: str, flow: str = "f") -> None:
    """Publish each, from version 1 on. Afterwards the flow's own definition is a different one."""
    await node.create_flow(flow, WAIT)
    for number, each in enumerate(steps, 1):
        await node.operations.flows.update(flow, FlowChange(definition=definition(each)))
        version, is_new = await node.operations.versions.publish(flow)
        assert (version.version, is_new) == (number, True)
    await node.operations.flows.update(flow, FlowChange(definition=definition(WAIT)))


async def start(node: Node, execution_id: str, qualifier: str, name: str | None = None) -> ExecutionRow | None:
    request = NewExecution(flow_name="f", execution_id=execution_id, name=name or execution_id, qualifier=qualifier)
    return (await node.engine.starter.start(request)).execution


async def test_starts_are_divided_by_weight(node: Node) -> None:
    await publish(node, PASS % "one", PASS % "two")
    alias = await node.operations.aliases.create("f", "prod", [Route(1, 90), Route(2, 10)])
    ids = [f"019b7d3e-2f6a-7c51-9d0f-{number:012x}" for number in range(300)]
    rows = await asyncio.gather(*(start(node, execution_id, "prod") for execution_id in ids))
    drawn = [row.flow_version for row in rows if row is not None]
    assert drawn == [alias.routing.choose(execution_id) for execution_id in ids]
    assert 15 <= drawn.count(2) <= 45  # equal ids always give the same number
    page = await node.operations.executions.list("f", ExecutionFilter(), next_token=None, limit=100)
    assert {(row.flow_alias, row.definition.count("one"), row.flow_version) for row in page.items} == {
        ("prod", 1, 1),
        ("prod", 0, 2),
    }


async def test_a_repeated_start_finds_the_version_that_the_first_has_drawn(node: Node) -> None:
    await publish(node, WAIT, PASS % "two")
    await node.operations.aliases.create("f", "prod", [Route(1, 100)])
    first = await start(node, "id-1", "prod", "run")
    assert first is not None
    assert first.flow_version == 1
    await node.operations.aliases.update("f", "prod", routes=[Route(2, 100)])
    assert await start(node, "id-1", "prod", "run") is None  # it is read from the database
    assert (await node.operations.executions.describe("f", "run")).flow_version == 1


async def test_a_sub_flow_runs_the_version_of_its_step(node: Node) -> None:
    await publish(node, PASS % "one", PASS % "two", flow="child")
    await node.operations.aliases.create("child", "prod", [Route(2, 100)])
    step = "{type: task, name: s, resourceArn: 'acs:fnf:::flow/child', pattern: sync, serviceParams: {Qualifier: %s}}"
    for number, (qualifier, output) in enumerate([("1", "one"), ("'2'", "two"), ("prod", "two"), ("$.v", "one")]):
        await node.create_flow(f"parent{number}", f"- {step % qualifier}")
        await node.start(f"parent{number}", "e", {"v": "1"})
        assert await node.output_of(f"parent{number}", "e") == {"version": output}
    await node.create_flow("wrong", f"- {step % 'none'}")
    await node.start("wrong", "e")
    assert await node.error_of("wrong", "e") == "FnF.FlowAliasNotExists"
    action = "{type: task, name: s, action: 'fnf:StartExecution', serviceParams: {FlowName: child, Qualifier: $.v}}"
    for name, each, error in (("a", step % "$.v", "FnF.InvalidArgument"), ("b", action, "fnf.InvalidArgument")):
        await node.create_flow(name, f"- {each}")
        await node.start(name, "e", {"v": ["1"]})
        assert await node.error_of(name, "e") == error


async def test_versions_that_do_not_exist(node: Node) -> None:
    await publish(node, WAIT)
    for qualifier in ("2", "0", "01"):
        with pytest.raises(FlowVersionNotExists):
            await start(node, "id-1", qualifier)
    for qualifier in ("prod", "a b", "\0"):
        with pytest.raises(FlowAliasNotExists):
            await start(node, "id-1", qualifier)
    good, bad = await asyncio.gather(start(node, "id-2", "1"), start(node, "id-3", "9"), return_exceptions=True)
    assert isinstance(good, ExecutionRow)  # a refused start affects no other in its batch
    assert isinstance(bad, FlowVersionNotExists)


async def test_a_start_without_a_qualifier_reads_no_version(sqlite_url: str, clock: ManualClock) -> None:
    async with running_node(FragileDatabase(sqlite_url), clock) as node:
        await node.create_flow("f", WAIT)
        with node.database.write() as connection:
            connection.execute(text("DROP TABLE flow_versions"))
            connection.execute(text("DROP TABLE flow_aliases"))
        assert (await node.operations.executions.start("f")).flow_version is None
        assert (await node.operations.executions.start("f", qualifier="LATEST")).flow_version is None
