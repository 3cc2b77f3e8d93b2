"""Uses up the nonces of a batch's items, in the transaction of what they change.

All are stored by one statement before any execution is loaded. If one of them is in the database already, the batch is
tried again with one statement for each, which tells whose it is: that item is answered with SignatureNonceUsed.

An item whose batch is tried again, or divided, may find its own nonce stored. `Nonce.is_tried` says that this is
possible, and the row's expiry that it is so: no copy of the request, on this node or another, has the same one
(`NonceExpiries`).
"""

from collections.abc import Iterable, Sequence

from sqlalchemy import Connection

from flowserver.base.nonces import Nonce
from flowserver.engine.commit.batch_items import Item
from flowserver.store.access_keys import nonce_expires_at, use_nonce, use_nonces_later


class NonceRepeated(Exception):
    """One of the batch's nonces was used before, and nothing is done."""


class SpentNonces:
    """The nonces of one batch, used up in its transaction."""

    def __init__(self, connection: Connection, items: Sequence[Item], *, singly: bool) -> None:
        """Unless `singly`, raises NonceRepeated for a nonce that was used before; on PostgreSQL possibly later."""
        self._connection = connection
        self._refused: set[int] = set()
        self._nonces = [item.nonce for item in items if item.nonce is not None]
        if singly or any(nonce.is_tried for nonce in self._nonces):
            self._nonces = [nonce for nonce in self._nonces if self._is_spent(nonce)]
        elif self._nonces:
            use_nonces_later(connection, self._nonces, NonceRepeated)

    def refuses(self, item: Item) -> bool:
        """Whether the item's nonce was used before."""
        return bool(self._refused) and id(item.nonce) in self._refused

    def may_be_committed(self) -> None:
        """The transaction is about to be committed; whether it is may remain unknown."""
        for nonce in self._nonces:
            nonce.is_tried = True

    def _is_spent(self, nonce: Nonce) -> bool:
        """Whether the nonce is used up for its own request, now or by an earlier try."""
        is_new = use_nonce(self._connection, nonce)
        if is_new or (nonce.is_tried and nonce_expires_at(self._connection, nonce) == nonce.expires_at):
            return True
        self._refused.add(id(nonce))
        return False


def not_committed(items: Iterable[Item]) -> None:
    """The transaction of these items was rolled back, and it was the first."""
    for item in items:
        if item.nonce is not None:
            item.nonce.is_tried = False
