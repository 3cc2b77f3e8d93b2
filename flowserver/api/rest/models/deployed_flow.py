"""What a change of a flow answers."""

from typing import Annotated, Self

from pydantic import Field

from flowserver.api.rest.models.definition_checks import Diagnostic
from flowserver.api.rest.models.flows import FLOW_EXAMPLE, Flow
from flowserver.api.rest.models.shared_types import with_examples
from flowserver.operations.flows import Deployed


class DeployedFlow(Flow):
    """A flow after a change, with what the check of its definition found."""

    model_config = with_examples({**FLOW_EXAMPLE, "warnings": []})

    warnings: Annotated[
        list[Diagnostic], Field(description="What is doubtful about the definition that was given, in order of place.")
    ]

    @classmethod
    def of_change(cls, deployed: Deployed) -> Self:
        """The flow and the warnings."""
        shown = [Diagnostic.of(each) for each in deployed.warnings]
        return cls(**vars(Flow.of(deployed.flow)), warnings=shown)
