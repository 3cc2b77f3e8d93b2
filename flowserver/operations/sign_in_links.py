"""Sign-in links: how a browser gets an access key without a person who types or copies a secret.

A link ends in `#` and a code. Browsers keep what follows the `#` to themselves, so the code is in no log of a server or
a proxy and in no Referer. The page that opens sends it as a bearer token, by POST and only when its user presses a
button: what merely opens links, such as a preview, uses none up. The code is good for that one call, once, until the
link is over; the answer is a new key.
"""

import secrets
from dataclasses import dataclass, field, replace
from typing import Final

from sqlalchemy import Connection

from flowserver.base.errors import AccessDenied
from flowserver.base.request_context import RequestContext, present_request
from flowserver.engine.engine import Engine
from flowserver.operations.access import AccessOperations, NewAccessKey, make_access_key
from flowserver.operations.permissions import ADMIN
from flowserver.operations.request_records import record_of
from flowserver.store.access_keys import AccessKey, find_key_by_token, insert_access_key, token_digest
from flowserver.store.audit import OK, begin_record
from flowserver.store.encrypted_values import place_of
from flowserver.store.schema.tables import access_keys
from flowserver.store.sign_in_links import SignInLink, has_link, take_link

CODE_PREFIX: Final = "flc_"
FIRST_LABEL: Final = "console"
"""The label of a first key that a link makes."""

REFUSED: Final = (
    "the sign-in link is unknown, was used, or is over; make another: flowserver keys create --sign-in-link"
)


@dataclass(frozen=True, slots=True)
class NewSignInLink:
    """A new link, and its code, which cannot be read again."""

    link: SignInLink
    code: str = field(repr=False)

    def url(self, server: str) -> str:
        """The link to the server with this base URL."""
        return f"{server.rstrip('/')}/sign-in#{self.code}"


def make_sign_in_link(
    now_ms: int,
    seconds: int,
    *,
    label: str = FIRST_LABEL,
    role: str = ADMIN,
    flows: str = "",
    key_expires_at: int | None = None,
    is_first: bool = False,
) -> NewSignInLink:
    """A new random link for a key that will be so. It may be used for `seconds`, and no longer than the key."""
    code = CODE_PREFIX + secrets.token_urlsafe(32)
    end_ms = now_ms + seconds * 1_000
    link = SignInLink(
        digest=token_digest(code),
        label=label,
        role=role,
        flows=flows,
        key_expires_at=key_expires_at,
        is_first=is_first,
        expires_at=end_ms if key_expires_at is None else min(end_ms, key_expires_at),
    )
    return NewSignInLink(link, code)


class SignInLinkOperations:
    """The one operation of a link."""

    def __init__(self, engine: Engine, access: AccessOperations) -> None:
        self._engine = engine
        self._access = access

    async def redeem(self, code: str) -> NewAccessKey:
        """Use the link with that code up, and make its key.

        Raises AccessDenied, with the same words whether the link is unknown, was used, or is over.
        """
        now_ms, digest = self._engine.clock.now_ms(), token_digest(code)
        fresh = make_access_key("", now_ms)
        request = present_request() or RequestContext()
        named = f"keys/{fresh.key.access_key_id}"
        record = record_of(request, now_ms, operation="keys.create", named=named, result=OK)

        def change(connection: Connection, earlier: AccessKey | None) -> AccessKey | None:
            link = take_link(connection, digest, now_ms)
            if link is None:  # perhaps because an earlier try was committed
                is_mine = earlier is not None and find_key_by_token(connection, earlier.token_digest, now_ms)
                return earlier if is_mine else None
            made = replace(
                fresh.key, label=link.label, role=link.role, flows=link.flows, expires_at=link.key_expires_at
            )
            insert_access_key(connection, self._protected(made))
            begin_record(connection, replace(record, key_id=made.access_key_id, label=made.label))
            return made

        # A flood of made-up codes costs look-ups, and no place in the writer's queue.
        is_known = await self._engine.reader.ask(
            lambda connection: has_link(connection, digest, now_ms), by_caller=True
        )
        key = await self._engine.committer.write_once(change, by_caller=True) if is_known else None
        if key is None:
            raise AccessDenied(REFUSED)
        request.key_id, request.key_label = key.access_key_id, key.label
        self._access.expect_key()
        return NewAccessKey(key, fresh.token)

    def _protected(self, key: AccessKey) -> AccessKey:
        place = place_of(access_keys, key.access_key_id)
        return replace(key, secret=self._engine.encryption.protect(key.secret, place))
