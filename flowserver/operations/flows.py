"""Creating, changing, reading and deleting flows; checking definitions."""

from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, TypeVar
from uuid import uuid4

from sqlalchemy import Connection

from flowserver.analysis.proving import prove_parsed
from flowserver.base.errors import FlowAlreadyExists, FlowNotExists, InvalidArgument, ResourceThrottled
from flowserver.base.names import NAME_RULE, is_name
from flowserver.concurrency.background_throttle import yield_to_writer
from flowserver.engine.engine import Engine
from flowserver.language.check_cost import Work
from flowserver.language.diagnostics import DefinitionRejected, Diagnostic
from flowserver.language.parser import ParsedDefinition, parse
from flowserver.language.picture import Picture, picture_of
from flowserver.operations.audit import AuditLog, audited
from flowserver.operations.definition_targets import find_missing_targets, has_targets
from flowserver.operations.pages import Page, check_limit
from flowserver.operations.preconditions import UNCONDITIONAL, Precondition
from flowserver.operations.text_rules import check_no_nul
from flowserver.store.flows import (
    FlowRow,
    OnRetriesExhausted,
    count_flows,
    definition_id_of,
    delete_flow,
    find_flow,
    insert_flow,
    list_flows,
    update_flow,
    was_created,
)
from flowserver.store.schedules.rows import delete_schedules_of
from flowserver.store.versions.versions import delete_versions_of

FLOW_TYPE = "FDL"
EXECUTION_MODES = ("", "Standard", "Express")
DESCRIPTION_CHARACTERS_MAX = 4_096

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Retention:
    """How many days ended executions are kept; 0: for ever; None: as long as the server's setting says."""

    days: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowChange:
    """Fields of UpdateFlow; None leaves a field as it is."""

    definition: str | None = None
    description: str | None = None
    type: str | None = None
    role_arn: str | None = None
    external_storage_location: str | None = None
    environment: str | None = None
    kept: Retention | None = None
    on_retries_exhausted: OnRetriesExhausted | None = None


class Deployed(NamedTuple):
    """A flow as it is after a change."""

    flow: FlowRow
    is_new: bool
    warnings: tuple[Diagnostic, ...]
    """What is doubtful about the definition that was given; () if none was."""


class FlowOperations:
    """Operations on flows."""

    def __init__(self, engine: Engine, audit: AuditLog, *, lenient: bool = False) -> None:
        self._engine = engine
        self._audit = audit
        self._lenient = lenient

    @audited("flows.create", "flows/{name}")
    async def create(
        self,
        name: str,
        definition: str,
        *,
        description: str = "",
        type: str = FLOW_TYPE,
        role_arn: str = "",
        execution_mode: str = "",
        external_storage_location: str = "",
        environment: str = "",
        resource_group_id: str = "",
        retention_days: int | None = None,
        on_retries_exhausted: OnRetriesExhausted = "fail",
        strict: bool = False,
    ) -> Deployed:
        """Create a flow; with `strict`, warnings refuse the definition.

        Raises InvalidArgument, DefinitionRejected, FlowAlreadyExists, ResourceThrottled.
        """
        if not is_name(name):
            raise InvalidArgument(f"Name {NAME_RULE}")
        if execution_mode not in EXECUTION_MODES:
            raise InvalidArgument("ExecutionMode must be Standard or Express")
        _check_fields(type, description)
        warnings = await self.validate(definition, name=name, strict=strict)
        now = self._engine.clock.now_ms()
        flow_id = str(uuid4())
        flow = FlowRow(
            flow_id=flow_id,
            name=name,
            description=description,
            type=type,
            role_arn=role_arn,
            execution_mode=execution_mode,
            external_storage_location=external_storage_location,
            environment=environment,
            resource_group_id=resource_group_id,
            definition_id=definition_id_of(flow_id, definition),
            definition=definition,
            created_at=now,
            modified_at=now,
            retention_days=retention_days,
            on_retries_exhausted=on_retries_exhausted,
        )
        await self._engine.committer.write(lambda connection: self._insert(connection, flow), by_caller=True)
        return Deployed(flow, True, warnings)

    def _insert(self, connection: Connection, flow: FlowRow) -> None:
        is_full = count_flows(connection) >= self._engine.limits.flows_max
        if not is_full and insert_flow(connection, flow):
            return
        if was_created(connection, flow.flow_id):
            return  # by a first try that was committed although its answer was lost
        if is_full:
            raise ResourceThrottled(f"there are {self._engine.limits.flows_max} flows already; delete some first")
        raise FlowAlreadyExists(f"flow {flow.name} exists already")

    @audited("flows.update", "flows/{name}")
    async def update(
        self, name: str, change: FlowChange, *, precondition: Precondition = UNCONDITIONAL, strict: bool = False
    ) -> Deployed:
        """Change a flow; running executions keep their definition.

        Raises as `create`, FlowNotExists, and PreconditionFailed.
        """
        warnings = await self._check_change(name, change, strict)
        now = self._engine.clock.now_ms()

        def write(connection: Connection, earlier: FlowRow | None) -> FlowRow:
            flow = find_flow(connection, name, lock=True)  # another node may change other fields of it
            if earlier is not None and (flow is None or flow == earlier or flow.flow_id != earlier.flow_id):
                return earlier  # it was committed; or it was rolled back, and the flow is gone
            return _update(connection, _existing(flow, name), change, now, precondition)

        return Deployed(await self._engine.committer.write_once(write, by_caller=True), False, warnings)

    async def check(
        self, name: str, change: FlowChange, *, precondition: Precondition = UNCONDITIONAL, strict: bool = False
    ) -> Deployed:
        """What `update` would find wrong or doubtful, with the flow as it is; nothing changes. Raises as `update`."""
        warnings = await self._check_change(name, change, strict)
        flow = await self.describe(name)
        precondition.check(flow)
        return Deployed(flow, False, warnings)

    async def _check_change(self, name: str, change: FlowChange, strict: bool) -> tuple[Diagnostic, ...]:
        _check_fields(change.type or FLOW_TYPE, change.description or "")
        if change.definition is None:
            return ()
        return await self.validate(change.definition, name=name, strict=strict)

    @audited("flows.put", "flows/{name}")
    async def put(
        self,
        name: str,
        definition: str,
        *,
        description: str | None = None,
        kept: Retention | None = None,
        on_retries_exhausted: OnRetriesExhausted | None = None,
        precondition: Precondition = UNCONDITIONAL,
        strict: bool = False,
    ) -> Deployed:
        """Give a flow this definition, creating it if need be. Raises as `create`, and PreconditionFailed.

        For an existing flow, None leaves a field as it is.
        """
        change = FlowChange(
            definition=definition, description=description, kept=kept, on_retries_exhausted=on_retries_exhausted
        )
        try:
            return await self.update(name, change, precondition=precondition, strict=strict)
        except FlowNotExists:
            precondition.check(None)
        try:
            days = None if kept is None else kept.days
            return await self.create(
                name,
                definition,
                description=description or "",
                retention_days=days,
                on_retries_exhausted=on_retries_exhausted or "fail",
                strict=strict,
            )
        except FlowAlreadyExists:  # a concurrent request created it first
            return await self.update(name, change, precondition=precondition, strict=strict)

    @audited("flows.delete", "flows/{name}")
    async def delete(self, name: str, *, precondition: Precondition = UNCONDITIONAL) -> None:
        """Delete a flow with its schedules, versions and aliases.

        Its running executions are stopped, and none can be read any more. Raises FlowNotExists, PreconditionFailed.
        """
        now = self._engine.clock.now_ms()

        def write(connection: Connection, earlier: str | None) -> str:
            found = find_flow(connection, name, lock=True)
            if earlier is not None and (found is None or found.flow_id != earlier):
                return earlier  # it was committed; a flow of that name is a new one
            flow = _existing(found, name)
            precondition.check(flow)  # after a try that was rolled back the flow may have changed
            delete_flow(connection, flow.flow_id, now)
            delete_schedules_of(connection, name, flow.flow_id)
            delete_versions_of(connection, flow.flow_id)
            return flow.flow_id

        await self._engine.committer.write_once(write, by_caller=True)
        self._engine.recovery.sweep_soon()

    async def describe(self, name: str) -> FlowRow:
        """The flow; raises FlowNotExists."""
        return await self._engine.reader.ask(lambda connection: require_flow(connection, name), by_caller=True)

    async def list(
        self,
        *,
        next_token: str | None,
        limit: int | None,
        resource_group_id: str | None = None,
        name_prefix: str | None = None,
        documents: bool = True,
    ) -> Page[FlowRow]:
        """Flows by name, perhaps of a resource group or with a prefix only; the token is where the next page starts.

        Without `documents` their definitions and environments are left empty. A page ends before `page_bytes_max`.
        """
        limits = self._engine.limits
        size = check_limit(limit, limits.page_max)
        query = partial(
            list_flows,
            from_name=next_token or "",
            limit=size,
            bytes_max=limits.page_bytes_max,
            resource_group_id=resource_group_id,
            name_prefix=name_prefix,
            documents=documents,
        )
        return Page(*await self._engine.slow_reads.ask(query))

    async def validate(
        self, definition: str, *, name: str | None = None, lenient: bool | None = None, strict: bool = False
    ) -> tuple[Diagnostic, ...]:
        """Check a definition without keeping it; returns its warnings, raises DefinitionRejected.

        `name` is that of the flow. If `lenient` is None, the server's setting applies. With `strict`, warnings refuse
        the definition.
        """
        warnings = (await self._parse(definition, lenient, name)).warnings
        if strict and warnings:
            raise DefinitionRejected(warnings)
        return warnings

    async def diagnose(
        self, definition: str, *, lenient: bool | None = None, rules: bool = True
    ) -> tuple[Diagnostic, ...]:
        """All diagnostics of a definition, errors included; with `rules` also what `prove` finds in a valid one."""
        try:
            parsed = await self._parse(definition, lenient)
        except DefinitionRejected as error:
            return error.diagnostics
        if not rules:
            return parsed.warnings
        limits, work = self._engine.limits, Work(pause=yield_to_writer)
        look = partial(prove_parsed, definition, parsed, limits, work, limits.definition_proof_keys_max)
        return (await self._engine.checks.run(look)).findings

    async def _parse(self, definition: str, lenient: bool | None, name: str | None = None) -> ParsedDefinition:
        """A definition with its warnings, those of missing targets included; raises DefinitionRejected."""
        limits, work = self._engine.limits, Work(pause=yield_to_writer)
        is_lenient = self._lenient if lenient is None else lenient
        parsed = await self._engine.checks.run(lambda: parse(definition, limits, lenient=is_lenient, work=work))
        if not has_targets(parsed.flow):
            return parsed
        look = partial(find_missing_targets, parsed=parsed, elsewhere=self._engine.outlets, name=name)
        warnings = await self._engine.slow_reads.ask(look)
        return ParsedDefinition(parsed.flow, warnings)

    async def picture(self, definition: str) -> Picture:
        """The steps of a definition and the ways between them; unknown and empty attributes are left out.

        Raises DefinitionRejected, and InvalidArgument if the paths of its steps have more than `graph_path_bytes_max`.
        """
        limits, work = self._engine.limits, Work(pause=yield_to_writer)
        picture = await self._engine.checks.run(
            lambda: picture_of(parse(definition, limits, lenient=True, work=work).flow)
        )
        maximum = limits.graph_path_bytes_max
        if picture.path_characters > maximum:
            raise InvalidArgument(f"the paths of the steps have more than {maximum} bytes: nest less, or shorten names")
        return picture


def require_flow(connection: Connection, name: str, *, lock: bool = False) -> FlowRow:
    """The live flow of that name, locked for a change on request; raises FlowNotExists."""
    return _existing(find_flow(connection, name, lock=lock), name)


def _existing(flow: FlowRow | None, name: str) -> FlowRow:
    if flow is None:
        raise FlowNotExists(f"flow {name} does not exist")
    return flow


def _update(
    connection: Connection, flow: FlowRow, change: FlowChange, now_ms: int, precondition: Precondition
) -> FlowRow:
    precondition.check(flow)
    given = {
        "definition": change.definition,
        "description": change.description,
        "role_arn": change.role_arn,
        "external_storage_location": change.external_storage_location,
        "environment": change.environment,
        "on_retries_exhausted": change.on_retries_exhausted,
    }
    texts = {field: value for field, value in given.items() if value is not None}
    changed = replace(flow, modified_at=now_ms, **texts)  # type: ignore[arg-type]
    if change.kept is not None:
        changed = replace(changed, retention_days=change.kept.days)
    changed = replace(changed, definition_id=definition_id_of(flow.flow_id, changed.definition))
    if not update_flow(connection, changed):
        raise FlowNotExists(f"flow {flow.name} does not exist")
    return changed


def _check_fields(type: str, description: str) -> None:
    if type != FLOW_TYPE:
        raise InvalidArgument(f"Type must be {FLOW_TYPE}")
    check_description(description)


def check_description(description: str) -> None:
    """Raises InvalidArgument if the description is too long or has the character NUL."""
    if len(description) > DESCRIPTION_CHARACTERS_MAX:
        raise InvalidArgument(f"Description must be at most {DESCRIPTION_CHARACTERS_MAX} characters")
    check_no_nul("Description", description)
