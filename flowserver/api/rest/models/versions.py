"""Published versions of flows, and aliases."""

from typing import Annotated, Any, Self

from pydantic import Field

from flowserver.api.rest.models.flows import DEFINITION, Definition, Description
from flowserver.api.rest.models.shared_types import Instant, Name, NextToken, RequestBody, Resource, with_examples
from flowserver.base.clock import format_instant
from flowserver.base.json_values import JsonObject
from flowserver.machine.versions.routing import WEIGHTS, Route
from flowserver.store.versions.aliases import AliasRow
from flowserver.store.versions.versions import VersionRow

Number = Annotated[int, Field(ge=1, le=999_999_999, description="The number of a version of the flow, from 1 on.")]

_SUMMARY: JsonObject = {
    "version": 3,
    "description": "asks for the postcode",
    "createdTime": "2026-01-02T03:04:05.678Z",
}


class FlowVersionSummary(Resource):
    """A version as listings show it: without its definition."""

    model_config = with_examples(_SUMMARY)

    version: Annotated[Number, Field(description="Counted from 1 for each flow, and never used again.")]
    description: Description
    created_time: Instant

    @classmethod
    def of(cls, row: VersionRow) -> Self:
        """The summary of a version."""
        return cls(**_summary(row))


def _summary(row: VersionRow) -> dict[str, Any]:
    return {
        "version": row.version,
        "description": row.description,
        "created_time": format_instant(row.created_at),
    }


class FlowVersion(FlowVersionSummary):
    """A definition of a flow that was published under a number and does not change any more."""

    model_config = with_examples({**_SUMMARY, "definition": DEFINITION})

    definition: Definition

    @classmethod
    def of(cls, row: VersionRow) -> Self:
        """The version with its definition, exactly as it was given."""
        return cls(**_summary(row), definition=row.definition)


class FlowVersionPage(Resource):
    """Versions of a flow, the newest first."""

    model_config = with_examples({"versions": [_SUMMARY], "nextToken": "2"})

    versions: list[FlowVersionSummary]
    next_token: NextToken


class PublishVersion(RequestBody):
    """What to say of the version; everything may be absent, and so may the body."""

    model_config = with_examples({"description": "asks for the postcode"})

    description: Description = ""


_ROUTES: JsonObject = {"routes": [{"version": 2, "weight": 90}, {"version": 3, "weight": 10}]}


class AliasRoute(Resource):
    """A version, and how many of a hundred starts run it."""

    model_config = with_examples({"version": 2, "weight": 90})

    version: Number
    weight: Annotated[int, Field(ge=0, le=WEIGHTS, description="Percent of the starts.")] = WEIGHTS


class GivenRoute(RequestBody):
    """A version, and how many of a hundred starts run it."""

    model_config = with_examples({"version": 2, "weight": 90})

    version: Number
    weight: Annotated[int, Field(ge=0, le=WEIGHTS, description=f"Percent of the starts; {WEIGHTS} if absent.")] = (
        WEIGHTS
    )

    @property
    def route(self) -> Route:
        """The route."""
        return Route(self.version, self.weight)


Routes = Annotated[
    list[GivenRoute],
    Field(min_length=1, max_length=2, description=f"One or two versions; the weights come to {WEIGHTS}."),
]


class FlowAlias(Resource):
    """A name for one or two versions of a flow, among which it divides the starts."""

    model_config = with_examples(
        {
            "name": "prod",
            "description": "",
            **_ROUTES,
            "createdTime": "2026-01-02T03:04:05.678Z",
            "lastModifiedTime": "2026-01-02T03:04:05.678Z",
        }
    )

    name: Name
    description: Description
    routes: list[AliasRoute]
    created_time: Instant
    last_modified_time: Instant

    @classmethod
    def of(cls, row: AliasRow) -> Self:
        """The alias."""
        return cls(
            name=row.name,
            description=row.description,
            routes=[AliasRoute(version=each.version, weight=each.weight) for each in row.routing.routes],
            created_time=format_instant(row.created_at),
            last_modified_time=format_instant(row.modified_at),
        )


class FlowAliasPage(Resource):
    """Aliases of a flow, ordered by name."""

    model_config = with_examples({"aliases": [FlowAlias.model_json_schema()["examples"][0]], "nextToken": None})

    aliases: list[FlowAlias]
    next_token: NextToken


class CreateAlias(RequestBody):
    """A new alias."""

    model_config = with_examples({"name": "prod", **_ROUTES})

    name: Name
    routes: Routes
    description: Description = ""


class PutAlias(RequestBody):
    """What an alias shall be."""

    model_config = with_examples(_ROUTES)

    routes: Routes
    description: Description | None = None


class UpdateAlias(RequestBody):
    """What to change of an alias; what is absent or null stays as it is."""

    model_config = with_examples(_ROUTES)

    routes: Routes | None = None
    description: Description | None = None
