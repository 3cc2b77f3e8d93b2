"""The server itself: what a caller may do, its nodes, and its keys."""

from typing import Annotated, Self

from pydantic import Field

from flowserver.api.rest.models.shared_types import Instant, NextToken, Resource, with_examples
from flowserver.base.clock import format_instant
from flowserver.operations.access import NewAccessKey
from flowserver.operations.callers import Caller
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
    "role": "deployer",
    "flows": "",
    "createdTime": "2026-01-02T03:04:05.678Z",
    "expiresTime": "2026-04-02T03:04:05.678Z",
    "lastUsedTime": "2026-01-03T03:04:05.678Z",
    "disabledTime": None,
}


class Permissions(Resource):
    """Who the caller is, and what it may do."""

    model_config = with_examples(
        {
            "key": "shop",
            "open": False,
            "role": "starter",
            "flows": "order-",
            "may": ["executions.read", "executions.start"],
        }
    )

    key: Annotated[str | None, Field(description="The label of the caller's key; null if the server is open.")]
    open: Annotated[bool, Field(description="Whether the server has no keys, and answers programs on its machine.")]
    role: Annotated[str, Field(description="The role of the caller's key; `admin` if the server is open.")]
    flows: Annotated[str, Field(description="What the names of the flows begin with that the caller may see and use.")]
    may: Annotated[list[str], Field(description="The names of what the caller may do; unknown ones are to be ignored.")]

    @classmethod
    def of(cls, caller: Caller) -> Self:
        """What the caller may do."""
        label = caller.label
        return cls(key=label, open=label is None, role=caller.role, flows=caller.flows, may=caller.permissions)


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
    role: Annotated[str, Field(description="What its holder may do.")]
    flows: Annotated[str, Field(description="What the names of the flows begin with that it is for; all if empty.")]
    created_time: Instant
    expires_time: Annotated[Instant | None, Field(description="From then on it is refused; null: never.")]
    last_used_time: Annotated[Instant | None, Field(description="Recorded once a minute at most; null: never.")]
    disabled_time: Annotated[Instant | None, Field(description="Null while it is enabled.")]

    @classmethod
    def of(cls, key: ShownKey) -> Self:
        """The key."""
        return cls(
            id=key.access_key_id,
            label=key.label,
            role=key.role,
            flows=key.flows,
            created_time=format_instant(key.created_at),
            expires_time=_instant(key.expires_at),
            last_used_time=_instant(key.last_used_at),
            disabled_time=_instant(key.disabled_at),
        )


def _instant(at_ms: int | None) -> str | None:
    return None if at_ms is None else format_instant(at_ms)


class NewKey(Resource):
    """A new access key, with its secrets, which nothing shows again."""

    model_config = with_examples(
        {
            "id": "FLS0123456789ABCDEF0123",
            "secret": "the secret",
            "bearerToken": "fls_the-token",
            "label": "console",
            "role": "admin",
            "flows": "",
            "expiresTime": None,
        }
    )

    id: str
    secret: Annotated[str, Field(description="SDKs sign with it and the id.")]
    bearer_token: Annotated[str, Field(description="For `Authorization: Bearer TOKEN`.")]
    label: str
    role: Annotated[str, Field(description="What its holder may do.")]
    flows: Annotated[str, Field(description="What the names of the flows begin with that it is for; all if empty.")]
    expires_time: Annotated[Instant | None, Field(description="From then on it is refused; null: never.")]

    @classmethod
    def of(cls, new: NewAccessKey) -> Self:
        """The key."""
        key = new.key
        return cls(
            id=key.access_key_id,
            secret=key.secret,
            bearer_token=new.token,
            label=key.label,
            role=key.role,
            flows=key.flows,
            expires_time=_instant(key.expires_at),
        )


class AccessKeyPage(Resource):
    """Keys, the oldest first."""

    model_config = with_examples({"keys": [_KEY], "nextToken": None})

    keys: list[AccessKey]
    next_token: NextToken
