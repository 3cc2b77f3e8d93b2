"""The server itself: what a caller may do, its nodes, and its keys."""

from typing import Annotated, Self

from pydantic import Field

from flowserver.api.rest.models.shared_types import Instant, NextToken, Resource, with_examples
from flowserver.base.clock import format_instant
from flowserver.store.access_keys import ShownKey
from flowserver.store.cluster.nodes import ShownNode

_NODE = {
    "id": "5f0c2a8e",
    "startedTime": "2026-01-02T03:04:05.678Z",
    "heartbeatTime": "2026-01-02T04:04:05.678Z",
    "leaving": False,
}
_KEY = {
    "id": "FLS0123456789ABCDEF0123",
    "label": "deploy",
    "createdTime": "2026-01-02T03:04:05.678Z",
    "disabledTime": None,
}


class Permissions(Resource):
    """Who the caller is, and what it may do."""

    model_config = with_examples({"key": "deploy", "open": False, "may": ["executions.start", "executions.stop"]})

    key: Annotated[str | None, Field(description="The label of the caller's key; null if the server is open.")]
    open: Annotated[bool, Field(description="Whether the server has no keys, and answers programs on its machine.")]
    may: Annotated[list[str], Field(description="The names of what the caller may do; unknown ones are to be ignored.")]


class Node(Resource):
    """A process that serves this database."""

    model_config = with_examples(_NODE)

    id: str
    started_time: Instant
    heartbeat_time: Annotated[
        Instant,
        Field(description="When it was last heard of, by its own clock. A node alone on its SQLite file sends none."),
    ]
    leaving: Annotated[bool, Field(description="Whether it finishes its work and takes no more.")]

    @classmethod
    def of(cls, node: ShownNode) -> Self:
        """The node."""
        return cls(
            id=node.node_id,
            started_time=format_instant(node.started_at),
            heartbeat_time=format_instant(node.heartbeat_at),
            leaving=node.is_leaving,
        )


class NodePage(Resource):
    """Nodes by id."""

    model_config = with_examples({"nodes": [_NODE], "thisNode": "5f0c2a8e", "version": "0.1.0", "nextToken": None})

    nodes: list[Node]
    this_node: Annotated[str, Field(description="The id of the node that answers.")]
    version: Annotated[str, Field(description="The version that this node runs.")]
    next_token: NextToken


class AccessKey(Resource):
    """An access key, without its secrets, which nothing shows again."""

    model_config = with_examples(_KEY)

    id: str
    label: str
    created_time: Instant
    disabled_time: Annotated[Instant | None, Field(description="Null while the key may be used.")]

    @classmethod
    def of(cls, key: ShownKey) -> Self:
        """The key."""
        return cls(
            id=key.access_key_id,
            label=key.label,
            created_time=format_instant(key.created_at),
            disabled_time=None if key.disabled_at is None else format_instant(key.disabled_at),
        )


class AccessKeyPage(Resource):
    """Keys, the oldest first."""

    model_config = with_examples({"keys": [_KEY], "nextToken": None})

    keys: list[AccessKey]
    next_token: NextToken
