"""What a start with a qualifier runs: the version that it names, or that its alias draws for it.

One statement reads the aliases of all such starts of a transaction, and one each version that they run. The versions
are held until it ends, so that a deletion waits for the starts (see `versions`). An alias may be changed and its old
version deleted between the statements; then the alias is read once more.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, select

from flowserver.machine.versions.routing import LATEST, Routing, is_version, version_in
from flowserver.store.schema.tables import definitions
from flowserver.store.schema.version_tables import flow_aliases, flow_versions
from flowserver.store.sql.list_parameter import among_pairs, pairs
from flowserver.store.sql.prepared import fetch_rows

VersionKey = tuple[str, int]
"""A flow's id and the number of a version."""


class Qualified(NamedTuple):
    """A start with a qualifier: LATEST, a version or an alias."""

    flow_id: str
    qualifier: str
    execution_id: str


class Resolved(NamedTuple):
    """What a start runs: a version and its definition, and the alias that drew it."""

    version: int
    alias: str | None
    definition_id: str
    definition: str


def is_latest(qualifier: str | None) -> bool:
    """Whether a start with this qualifier runs the flow's own definition, so that there is nothing to resolve."""
    return qualifier is None or qualifier == LATEST


def resolve_starts(connection: Connection, starts: Sequence[Qualified]) -> dict[str, Resolved]:
    """What the starts run, by execution id. Those whose version or alias does not exist are left out."""
    found = _resolve(connection, starts)
    again = [each for each in starts if each.execution_id not in found and not is_version(each.qualifier)]
    return found | _resolve(connection, again) if again else found


def _resolve(connection: Connection, starts: Sequence[Qualified]) -> dict[str, Resolved]:
    named = {(each.flow_id, each.qualifier) for each in starts if not is_version(each.qualifier)}
    aliases = _find_aliases(connection, named) if named else {}
    chosen: dict[str, VersionKey] = {}
    for each in starts:
        routing = aliases.get((each.flow_id, each.qualifier))
        version = version_in(each.qualifier) if routing is None else routing.choose(each.execution_id)
        if version is not None:
            chosen[each.execution_id] = (each.flow_id, version)
    versions = {key: share_version(connection, key) for key in sorted(set(chosen.values()))}
    resolved = {}
    for each in starts:
        key = chosen.get(each.execution_id)
        held = None if key is None else versions[key]
        if key is not None and held is not None:
            alias = None if is_version(each.qualifier) else each.qualifier
            resolved[each.execution_id] = Resolved(key[1], alias, *held)
    return resolved


def _find_aliases(connection: Connection, named: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Routing]:
    rows = fetch_rows(connection, _FIND_ALIASES, {"named": pairs(sorted(named))})
    return {(row.flow_id, row.name): Routing(row.version, row.other_version, row.other_weight) for row in rows}


def share_version(connection: Connection, key: VersionKey) -> tuple[str, str] | None:
    """The id and the text of the version's definition, if it exists. It is not deleted before this transaction ends."""
    rows = fetch_rows(connection, _SHARE_VERSION, {"b_flow": key[0], "b_version": key[1]})
    return (rows[0].definition_id, rows[0].text) if rows else None


_FIND_ALIASES = select(
    flow_aliases.c.flow_id,
    flow_aliases.c.name,
    flow_aliases.c.version,
    flow_aliases.c.other_version,
    flow_aliases.c.other_weight,
).where(among_pairs(flow_aliases.c.flow_id, flow_aliases.c.name, bindparam("named")))
_SHARE_VERSION = (
    select(flow_versions.c.definition_id, definitions.c.text)
    .join(definitions, definitions.c.definition_id == flow_versions.c.definition_id)
    .where(flow_versions.c.flow_id == bindparam("b_flow"), flow_versions.c.version == bindparam("b_version"))
    .with_for_update(of=flow_versions, read=True, key_share=True)
)
