"""Sign-in links: each makes one access key, for the first browser that takes it there.

The row holds how the key will be, and no secret: of the link's code only the digest, and the key does not exist before
the link is used. The code is random (256 bits), and rows are found by its digest, so the time of a look-up tells
nothing about the codes of other rows. A link that was used has no row: used links, unknown ones and those that are over
have the same answer.
"""

from dataclasses import asdict, dataclass, fields

from sqlalchemy import ColumnElement, Connection, delete, insert, select

from flowserver.base.clock import DAY_MS
from flowserver.store.access_keys import KEYS_SEEN, Admission, read_admission
from flowserver.store.cluster.nodes import newest_instant
from flowserver.store.schema.sign_in_tables import sign_in_links
from flowserver.store.schema.tables import secrets
from flowserver.store.sql.upserts import insert_of


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInLink:
    """A link that was not used; instants in ms."""

    digest: str
    """Of its code, as `token_digest` computes it."""

    label: str
    role: str
    flows: str
    key_expires_at: int | None
    is_first: bool
    """Whether the key must be the first one: the link is void once there is, or was, another."""

    expires_at: int


def insert_link(connection: Connection, link: SignInLink, now_ms: int) -> None:
    """Add a link, and delete those that are over, unless the clock may be ahead of all that the database knows."""
    newest = newest_instant(connection)
    if newest is None or now_ms - newest <= DAY_MS:
        connection.execute(delete(sign_in_links).where(sign_in_links.c.expires_at <= now_ms))
    connection.execute(insert(sign_in_links), asdict(link))


def has_link(connection: Connection, digest: str, now_ms: int) -> bool:
    """Whether there is a link with that digest that is not over."""
    query = select(sign_in_links.c.digest).where(_usable(digest, now_ms))
    return connection.execute(query).one_or_none() is not None


def take_link(connection: Connection, digest: str, now_ms: int) -> SignInLink | None:
    """The link with that digest, which is used up now; None if there is none that may be used."""
    columns = [sign_in_links.c[field.name] for field in fields(SignInLink)]
    row = connection.execute(delete(sign_in_links).where(_usable(digest, now_ms)).returning(*columns)).one_or_none()
    if row is None:
        return None
    link = SignInLink(**row._mapping)
    return None if link.is_first and not _is_first(connection) else link


def _usable(digest: str, now_ms: int) -> ColumnElement[bool]:
    return (sign_in_links.c.digest == digest) & (sign_in_links.c.expires_at > now_ms)


def _is_first(connection: Connection) -> bool:
    """Whether there never was a key. Of links that are used at the same time on two nodes, one is the first: the row
    exists once.
    """
    if read_admission(connection) is not Admission.OPEN:
        return False
    mine = insert_of(connection)(secrets).values(name=KEYS_SEEN, value="yes").on_conflict_do_nothing()
    return connection.execute(mine.returning(secrets.c.name)).one_or_none() is not None
