"""What a caller has seen of a flow or an alias, so that two who change it do not overwrite each other in silence."""

import hashlib
from dataclasses import dataclass

from flowserver.base.errors import PreconditionFailed
from flowserver.base.json_values import Json, dump_json
from flowserver.store.flows import FlowRow
from flowserver.store.versions.aliases import AliasRow


@dataclass(frozen=True, slots=True)
class Precondition:
    """How something must be before it is changed, in the terms of `If-Match` and `If-None-Match` (RFC 9110, 13.1)."""

    etags: frozenset[str] | None = None
    """It has one of these entity tags; None if any will do."""
    must_exist: bool = False
    must_be_new: bool = False

    def check(self, flow: FlowRow | None) -> None:
        """Raises PreconditionFailed unless the flow, None if it does not exist, is so."""
        if flow is None:
            self._check_missing("the flow")
        else:
            self._check_etag(f"flow {flow.name}", etag_of(flow))

    def check_alias(self, alias: AliasRow | None) -> None:
        """As `check`, for an alias."""
        if alias is None:
            self._check_missing("the alias")
        else:
            self._check_etag(f"alias {alias.name}", etag_of_alias(alias))

    def _check_missing(self, what: str) -> None:
        if self.must_exist or self.etags is not None:
            raise PreconditionFailed(f"{what} does not exist")

    def _check_etag(self, what: str, etag: str) -> None:
        if self.must_be_new:
            raise PreconditionFailed(f"{what} exists already")
        if self.etags is not None and etag not in self.etags:
            raise PreconditionFailed(f"{what} has changed since it was read; read it again")


UNCONDITIONAL = Precondition()


def etag_of(flow: FlowRow) -> str:
    """The entity tag of a flow, without quotes: it changes with all that a change of the flow can give."""
    fields: list[Json] = [
        flow.flow_id,
        flow.definition_id,
        flow.description,
        flow.role_arn,
        flow.external_storage_location,
        flow.environment,
        flow.retention_days,
        *([] if flow.on_retries_exhausted == "fail" else [flow.on_retries_exhausted]),
    ]
    return _digest(fields)


def etag_of_alias(alias: AliasRow) -> str:
    """The entity tag of an alias, without quotes: it changes with its routes and its description."""
    routing = alias.routing
    fields = [alias.description, routing.version, routing.other_version, routing.other_weight, alias.created_at]
    return _digest([alias.name, *fields])


def _digest(fields: list[Json]) -> str:
    return hashlib.sha256(dump_json(fields).encode()).hexdigest()[:32]
