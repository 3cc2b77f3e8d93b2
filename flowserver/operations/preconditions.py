"""What a caller has seen of a flow, so that two who deploy it do not overwrite each other in silence."""

import hashlib
from dataclasses import dataclass

from flowserver.base.errors import PreconditionFailed
from flowserver.base.json_values import dump_json
from flowserver.store.flows import FlowRow


@dataclass(frozen=True, slots=True)
class FlowPrecondition:
    """How a flow must be before it is changed, in the terms of `If-Match` and `If-None-Match` (RFC 9110, 13.1)."""

    etags: frozenset[str] | None = None
    """The flow has one of these entity tags; None if any will do."""
    must_exist: bool = False
    must_be_new: bool = False

    def check(self, flow: FlowRow | None) -> None:
        """Raises PreconditionFailed unless the flow, None if it does not exist, is so."""
        if flow is None:
            if self.must_exist or self.etags is not None:
                raise PreconditionFailed("the flow does not exist")
        elif self.must_be_new:
            raise PreconditionFailed(f"flow {flow.name} exists already")
        elif self.etags is not None and etag_of(flow) not in self.etags:
            raise PreconditionFailed(f"flow {flow.name} has changed since it was read; read it again")


ANY_FLOW = FlowPrecondition()


def etag_of(flow: FlowRow) -> str:
    """The entity tag of a flow, without quotes: it changes with all that a change of the flow can give."""
    fields = [
        flow.flow_id,
        flow.definition_id,
        flow.description,
        flow.role_arn,
        flow.external_storage_location,
        flow.environment,
        flow.retention_days,
    ]
    return hashlib.sha256(dump_json(fields).encode()).hexdigest()[:32]
