"""Writing of a node's changed windows of one batch, query by query, each in one step."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import redis

from controlplane.wire import keys
from controlplane.wire.aggregates.state_schema import schema_named
from controlplane.wire.results.blocks import Ref
from controlplane.wire.results.places import members_of, start_bytes, start_of
from controlplane.wire.results.rows import SLOTS, key_columns, number_of, pack_rows, section_of
from controlplane.wire.results.scripts import WRITE

# Entries of a query's change feed, and bytes of one: beyond them a follower receives a gap.
FEED_ENTRIES: Final = 300
FEED_ENTRY_BYTES: Final = 65_536
TOO_MANY: Final = b"*"
_QUERY_BYTES: Final = 8


@dataclass(frozen=True)
class WindowChanges:
    """Changed windows of several queries: schema names and rows, as nodes emit them."""

    tables: Sequence[tuple[str, Any]]


@dataclass(frozen=True)
class References:
    """References to stored blocks by query; of followed queries also the members in them."""

    refs: Mapping[int, Sequence[Ref]] = field(default_factory=dict)
    members: Mapping[int, Sequence[bytes]] = field(default_factory=dict)


@dataclass
class _Query:
    """The write of one query: its state schemas, and alternating members and rows."""

    forms: dict[int, str] = field(default_factory=dict)
    fields: list[bytes] = field(default_factory=list)
    least: bytes = b"\xff" * 8


_NOTHING: Final = _Query()
# Calls that are sent together.
_CALLS: Final = 500


def write(
    client: "redis.Redis",
    cluster: str,
    batch: int,
    changes: WindowChanges,
    followed: Iterable[int] = (),
    blocks: References = References(),
) -> None:
    """Write a node's changed windows of one batch; readers see all of a query's or none.

    `blocks`: references to blocks with more windows. Rows of a newer batch and final windows are
    not overwritten. A window with a negative count deletes its rows. The feed lists the changes of
    `followed` queries.
    """
    listened = frozenset(followed)
    script = client.register_script(WRITE)
    pipe = client.pipeline(transaction=False)
    changed = _by_query(changes, batch)
    for query in dict.fromkeys((*changed, *blocks.refs)):
        rows, refs = changed.get(query, _NOTHING), blocks.refs.get(query, ())
        names = [keys.windows_key(cluster, query), keys.rows_key(cluster, query),
                 keys.feed_key(cluster, query), keys.stored_key(cluster),
                 keys.blocks_key(cluster, query)]  # fmt: skip
        names += [keys.block_key(cluster, item.block) for item in refs]
        feed = b""
        if query in listened:
            feed = _feed_entry([*rows.fields[::2]], blocks.members.get(query, ()))
        forms = [value for number, name in rows.forms.items() for value in (f"form:{number}", name)]
        named_blocks = [value for element in refs for value in (element.block, element.to_bytes())]
        script(
            keys=names,
            args=[batch, start_of(rows.least), feed, FEED_ENTRIES, query, len(rows.forms), *forms,
                  *named_blocks, *rows.fields],
            client=pipe,
        )  # fmt: skip
        if len(pipe) >= _CALLS:
            pipe.execute()
    if len(pipe):
        pipe.execute()


def _by_query(changes: WindowChanges, batch: int) -> Mapping[int, _Query]:
    result: dict[int, _Query] = {}
    for name, table in changes.tables:
        if len(table):
            _take_table(result, name, table.combine_chunks(), batch)
    return result


def _take_table(result: dict[int, _Query], name: str, table: Any, batch: int) -> None:
    """Add the rows of one state schema, encoded together, to their queries."""
    form, section = schema_named(name), section_of(name).encode()
    members = members_of(table, key_columns(form))
    queries = np.asarray(table["query"])
    deleted: Any = np.zeros(len(table), np.bool_)
    if section == SLOTS.encode():
        lengths: Sequence[int] = [1] * len(members)
        owners, deleted = queries.tolist(), np.asarray(table["s0"]) < 0
    else:
        table, members, owners, lengths = _grouped(table, members, queries)
    values = pack_rows(name, form, table, lengths, batch)
    for index in np.flatnonzero(deleted).tolist():
        values[index] = b""
    for query, member, value in zip(owners, members, values, strict=True):
        write = result.get(query)
        if write is None:
            write = result[query] = _Query()
        write.fields += (member + section, value)
        write.least = min(write.least, member)
        write.forms[number_of(name)] = name


def _grouped(
    table: Any, members: Sequence[bytes], queries: Any
) -> tuple[Any, list[bytes], list[int], list[int]]:
    """Group the rows of one part of a window; return them with member, query, count."""
    owned = [start_bytes(query) + member
             for query, member in zip(queries.tolist(), members, strict=True)]  # fmt: skip
    known = pa.array(owned, pa.binary()).dictionary_encode()
    group = np.asarray(known.indices)
    order = np.argsort(group, kind="stable")
    names: list[Any] = known.dictionary.to_pylist()
    return (
        table.take(pa.array(order)).combine_chunks(),
        [name[_QUERY_BYTES:] for name in names],
        [start_of(name) for name in names],
        np.bincount(group, minlength=len(names)).tolist(),
    )


def _feed_entry(fields: Sequence[bytes], members: Sequence[bytes]) -> bytes:
    """Return the members that changed, each with its length before it, unless they are too many."""
    every = dict.fromkeys((*(item[:-1] for item in fields), *members))
    if sum(map(len, every)) > FEED_ENTRY_BYTES:
        return TOO_MANY
    return b"".join(len(value).to_bytes(2, "big") + value for value in every)
