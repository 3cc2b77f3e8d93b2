"""Published versions of flows: publishing, reading and deleting them."""

from dataclasses import replace
from functools import partial

from sqlalchemy import Connection

from flowserver.base.errors import FlowVersionInUse, FlowVersionNotExists, InvalidArgument, ResourceThrottled
from flowserver.engine.engine import Engine
from flowserver.machine.versions.routing import version_in
from flowserver.operations.audit import AuditLog, audited
from flowserver.operations.flows import check_description, require_flow
from flowserver.operations.pages import Page, check_limit
from flowserver.operations.preconditions import UNCONDITIONAL, Precondition
from flowserver.store.flows import FlowRow
from flowserver.store.versions.versions import (
    VersionRow,
    alias_with,
    count_versions,
    delete_version,
    execution_with,
    find_version,
    hold_version,
    list_versions,
    newest_version,
    publish_version,
)


class VersionOperations:
    """Operations on the versions of flows. All raise FlowNotExists."""

    def __init__(self, engine: Engine, audit: AuditLog) -> None:
        self._engine = engine
        self._audit = audit

    @audited("versions.publish", "flows/{flow_name}/versions")
    async def publish(
        self, flow_name: str, *, description: str = "", precondition: Precondition = UNCONDITIONAL
    ) -> tuple[VersionRow, bool]:
        """Publish the definition that the flow has now; returns the version and whether it is new.

        The newest version is returned if it has this definition and description already, so publishing can be repeated.
        The precondition is about the flow. Raises InvalidArgument, PreconditionFailed, ResourceThrottled.
        """
        check_description(description)
        now, most = self._engine.clock.now_ms(), self._engine.limits.flow_versions_max

        def write(connection: Connection, earlier: tuple[VersionRow, bool] | None) -> tuple[VersionRow, bool]:
            flow = require_flow(connection, flow_name, lock=True)
            precondition.check(flow)
            newest = newest_version(connection, flow.flow_id)
            if newest is not None and (newest.definition_id, newest.description) == (flow.definition_id, description):
                return newest, earlier is not None and earlier[1] and earlier[0].version == newest.version
            if count_versions(connection, flow.flow_id) >= most:
                raise ResourceThrottled(f"flow {flow_name} has {most} versions already; delete some first")
            return publish_version(connection, flow, description, now), True

        return await self._engine.committer.write_once(write, by_caller=True)

    async def describe(self, flow_name: str, version: str) -> VersionRow:
        """The version with its definition; raises FlowVersionNotExists."""
        return (await self._read(flow_name, version))[1]

    async def describe_flow(self, flow_name: str, version: str) -> FlowRow:
        """The flow with the definition of that version; raises FlowVersionNotExists."""
        flow, found = await self._read(flow_name, version)
        return replace(flow, definition_id=found.definition_id, definition=found.definition)

    async def list(self, flow_name: str, *, next_token: str | None, limit: int | None) -> Page[VersionRow]:
        """Versions without their definitions, the newest first; the token is the version the next page begins with."""
        limits = self._engine.limits
        size = check_limit(limit, limits.page_max)
        begin = None if not next_token else version_in(next_token)
        if next_token and begin is None:
            raise InvalidArgument("NextToken must be the number of a version")

        def read(connection: Connection) -> Page[VersionRow]:
            flow = require_flow(connection, flow_name)
            rows, following = list_versions(
                connection, flow.flow_id, from_version=begin, limit=size, bytes_max=limits.page_bytes_max
            )
            return Page(rows, None if following is None else str(following))

        return await self._engine.slow_reads.ask(read)

    @audited("versions.delete", "flows/{flow_name}/versions/{version}")
    async def delete(self, flow_name: str, version: str) -> None:
        """Delete a version. Raises FlowVersionNotExists, FlowVersionInUse (by an alias or a running execution)."""
        number = _number(flow_name, version)

        def write(connection: Connection, was_there: bool | None) -> bool:
            flow = require_flow(connection, flow_name, lock=True)
            if hold_version(connection, flow.flow_id, number):
                _check_unused(connection, flow, number)
                delete_version(connection, flow.flow_id, number)
            elif not was_there:
                raise no_version(flow_name, version)
            return True

        await self._engine.committer.write_once(write, by_caller=True)

    async def _read(self, flow_name: str, version: str) -> tuple[FlowRow, VersionRow]:
        find = partial(_require_version, flow_name=flow_name, version=version)
        return await self._engine.reader.ask(find, by_caller=True)


def no_version(flow_name: str, version: str) -> FlowVersionNotExists:
    """The refusal of a version that a flow does not have."""
    return FlowVersionNotExists(f"flow {flow_name} has no version {version[:20]}")


def _require_version(connection: Connection, flow_name: str, version: str) -> tuple[FlowRow, VersionRow]:
    flow = require_flow(connection, flow_name)
    found = find_version(connection, flow.flow_id, _number(flow_name, version))
    if found is None:
        raise no_version(flow_name, version)
    return flow, found


def _number(flow_name: str, version: str) -> int:
    number = version_in(version)
    if number is None:
        raise no_version(flow_name, version)
    return number


def _check_unused(connection: Connection, flow: FlowRow, version: int) -> None:
    alias = alias_with(connection, flow.flow_id, version)
    if alias is not None:
        raise FlowVersionInUse(f"alias {alias} of flow {flow.name} routes to version {version}")
    execution = execution_with(connection, flow.flow_id, version)
    if execution is not None:
        raise FlowVersionInUse(f"execution {execution} of flow {flow.name} runs version {version}")
