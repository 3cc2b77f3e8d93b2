"""Aliases of flows: names that route starts to one or two published versions."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from sqlalchemy import Connection

from flowserver.base.errors import (
    FlowAliasAlreadyExists,
    FlowAliasNotExists,
    InvalidArgument,
    ResourceThrottled,
)
from flowserver.base.names import NAME_RULE
from flowserver.engine.engine import Engine
from flowserver.machine.versions.routing import LATEST, Route, Routing, is_alias_name, routing_of
from flowserver.operations.audit import AuditLog, audited
from flowserver.operations.flows import check_description, require_flow
from flowserver.operations.pages import Page, check_limit
from flowserver.operations.preconditions import UNCONDITIONAL, Precondition
from flowserver.operations.versions import no_version
from flowserver.store.flows import FlowRow
from flowserver.store.versions.aliases import (
    AliasRow,
    count_aliases,
    delete_alias,
    find_alias,
    insert_alias,
    list_aliases,
    update_alias,
)
from flowserver.store.versions.versions import find_version

NextAlias = Callable[[AliasRow | None], AliasRow]
"""What an alias becomes; it is None if it does not exist."""


class AliasOperations:
    """Operations on the aliases of flows. All raise FlowNotExists."""

    def __init__(self, engine: Engine, audit: AuditLog) -> None:
        self._engine = engine
        self._audit = audit

    @audited("aliases.create", "flows/{flow_name}/aliases/{name}")
    async def create(self, flow_name: str, name: str, routes: Sequence[Route], *, description: str = "") -> AliasRow:
        """Create an alias.

        Raises InvalidArgument, FlowVersionNotExists, FlowAliasAlreadyExists, ResourceThrottled.
        """
        new = self._new(name, routes, description)

        def make(found: AliasRow | None) -> AliasRow:
            if found is not None:
                raise FlowAliasAlreadyExists(f"flow {flow_name} has an alias {name} already")
            return new

        return (await self._change(flow_name, name, make))[0]

    @audited("aliases.update", "flows/{flow_name}/aliases/{name}")
    async def update(
        self,
        flow_name: str,
        name: str,
        *,
        routes: Sequence[Route] | None = None,
        description: str | None = None,
        precondition: Precondition = UNCONDITIONAL,
    ) -> AliasRow:
        """Change what is not None. Executions that it has started keep their version.

        Raises InvalidArgument, FlowVersionNotExists, FlowAliasNotExists, PreconditionFailed.
        """
        routing = None if routes is None else _routing(routes)
        check_description(description or "")
        now = self._engine.clock.now_ms()

        def make(found: AliasRow | None) -> AliasRow:
            if found is None:
                raise _no_alias(flow_name, name)
            precondition.check_alias(found)
            changed = replace(found, modified_at=now)
            changed = changed if routing is None else replace(changed, routing=routing)
            return changed if description is None else replace(changed, description=description)

        return (await self._change(flow_name, name, make))[0]

    @audited("aliases.put", "flows/{flow_name}/aliases/{name}")
    async def put(
        self,
        flow_name: str,
        name: str,
        routes: Sequence[Route],
        *,
        description: str | None = None,
        precondition: Precondition = UNCONDITIONAL,
    ) -> tuple[AliasRow, bool]:
        """Give an alias these routes, creating it if need be; returns it and whether it is new.

        Without a description an existing alias keeps its own. Raises as `create` and `update`.
        """
        new = self._new(name, routes, description or "")

        def make(found: AliasRow | None) -> AliasRow:
            precondition.check_alias(found)
            if found is None:
                return new
            kept = found.description if description is None else description
            return replace(found, routing=new.routing, description=kept, modified_at=new.modified_at)

        return await self._change(flow_name, name, make)

    async def describe(self, flow_name: str, name: str) -> AliasRow:
        """The alias; raises FlowAliasNotExists."""
        return await self._engine.reader.ask(partial(_require, flow_name=flow_name, name=name), by_caller=True)

    async def list(self, flow_name: str, *, next_token: str | None, limit: int | None) -> Page[AliasRow]:
        """Aliases by name; the token is the name that the next page begins with."""
        limits = self._engine.limits
        size = check_limit(limit, limits.page_max)

        def read(connection: Connection) -> Page[AliasRow]:
            flow = require_flow(connection, flow_name)
            rows, following = list_aliases(
                connection, flow.flow_id, from_name=next_token or "", limit=size, bytes_max=limits.page_bytes_max
            )
            return Page(rows, following)

        return await self._engine.slow_reads.ask(read)

    @audited("aliases.delete", "flows/{flow_name}/aliases/{name}")
    async def delete(self, flow_name: str, name: str, *, precondition: Precondition = UNCONDITIONAL) -> None:
        """Delete an alias; executions that it has started go on. Raises FlowAliasNotExists, PreconditionFailed."""

        def write(connection: Connection, was_there: bool | None) -> bool:
            flow = require_flow(connection, flow_name, lock=True)
            found = find_alias(connection, flow.flow_id, name)
            if found is not None:
                precondition.check_alias(found)
                delete_alias(connection, flow.flow_id, name)
            elif not was_there:
                raise _no_alias(flow_name, name)
            return True

        await self._engine.committer.write_once(write, by_caller=True)

    def _new(self, name: str, routes: Sequence[Route], description: str) -> AliasRow:
        if not is_alias_name(name):
            rule = f"must not be {LATEST}, which means the flow's own definition" if name == LATEST else NAME_RULE
            raise InvalidArgument(f"the name of an alias {rule}")
        check_description(description)
        now = self._engine.clock.now_ms()
        return AliasRow(name=name, description=description, routing=_routing(routes), created_at=now, modified_at=now)

    async def _change(self, flow_name: str, name: str, make: NextAlias) -> tuple[AliasRow, bool]:
        """Write what `make` returns; also returns whether the alias is new."""
        most = self._engine.limits.flow_aliases_max

        def write(connection: Connection, earlier: tuple[AliasRow, bool] | None) -> tuple[AliasRow, bool]:
            flow = require_flow(connection, flow_name, lock=True)
            found = find_alias(connection, flow.flow_id, name)
            if earlier is not None and found == earlier[0]:
                return earlier
            alias = make(found)
            _check_versions(connection, flow, alias.routing)
            if found is not None:
                update_alias(connection, flow.flow_id, alias)
            elif count_aliases(connection, flow.flow_id) >= most:
                raise ResourceThrottled(f"flow {flow_name} has {most} aliases already; delete some first")
            else:
                insert_alias(connection, flow.flow_id, alias)
            return alias, found is None

        return await self._engine.committer.write_once(write, by_caller=True)


def _routing(routes: Sequence[Route]) -> Routing:
    try:
        return routing_of(list(routes))
    except ValueError as error:
        raise InvalidArgument(str(error)) from None


def _check_versions(connection: Connection, flow: FlowRow, routing: Routing) -> None:
    for route in routing.routes:
        if find_version(connection, flow.flow_id, route.version) is None:
            raise no_version(flow.name, str(route.version))


def _require(connection: Connection, flow_name: str, name: str) -> AliasRow:
    flow = require_flow(connection, flow_name)
    alias = find_alias(connection, flow.flow_id, name)
    if alias is None:
        raise _no_alias(flow_name, name)
    return alias


def _no_alias(flow_name: str, name: str) -> FlowAliasNotExists:
    return FlowAliasNotExists(f"flow {flow_name} has no alias {name[:128]}")
