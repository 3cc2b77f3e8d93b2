"""Counts that end at a bound."""

from typing import Annotated, Self

from pydantic import Field

from flowserver.api.rest.models.shared_types import Resource, with_examples
from flowserver.store.sql import bounded_counts


class Count(Resource):
    """How many there are."""

    model_config = with_examples({"count": 3, "atLeast": False})

    count: Annotated[int, Field(ge=0)]
    at_least: Annotated[bool, Field(description="Whether there may be more: the count stopped here.")]

    @classmethod
    def of(cls, counted: bounded_counts.Count) -> Self:
        """The count."""
        return cls(count=counted.count, at_least=counted.at_least)
