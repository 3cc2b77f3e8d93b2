"""The server's nodes and access keys, as people see them."""

from functools import partial

from flowserver.base.errors import InvalidArgument
from flowserver.engine.engine import Engine
from flowserver.operations.page_tokens import is_small_number
from flowserver.operations.pages import Page, check_limit
from flowserver.store.access_keys import ShownKey, list_shown_keys
from flowserver.store.cluster.nodes import ShownNode, list_shown_nodes


class NodeOperations:
    """Lists of nodes and keys. Keys are created and disabled by commands on the server's machine; over HTTP, only
    the code of a sign-in link makes one."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def node_id(self) -> str:
        """The id of this node: of the process that answers."""
        return self._engine.lease.node_id

    async def list(self, *, next_token: str | None, limit: int | None) -> Page[ShownNode]:
        """Nodes by id; the token is the last id of the page before."""
        size = check_limit(limit, self._engine.limits.page_max)
        read = partial(list_shown_nodes, after=next_token or "", limit=size + 1)
        rows = await self._engine.slow_reads.ask(read)
        return Page(rows[:size], rows[size - 1].node_id if len(rows) > size else None)

    async def list_keys(self, *, next_token: str | None, limit: int | None) -> Page[ShownKey]:
        """Keys, the oldest first; raises InvalidArgument."""
        size = check_limit(limit, self._engine.limits.page_max)
        created_at, _, key_id = (next_token or "0/").partition("/")
        if not is_small_number(created_at):
            raise InvalidArgument("this server did not give this nextToken")
        rows = await self._engine.slow_reads.ask(
            partial(list_shown_keys, after=(int(created_at), key_id), limit=size + 1)
        )
        last = rows[size - 1] if len(rows) > size else None
        return Page(rows[:size], None if last is None else f"{last.created_at}/{last.access_key_id}")
