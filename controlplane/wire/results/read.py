"""Reading of pages of whole windows, each in one step; the time depends on the page only."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, cast

import redis

from controlplane.wire import keys
from controlplane.wire.aggregates.finalize import has_user_aggregates
from controlplane.wire.aggregates.layout import layout_of
from controlplane.wire.aggregates.state_schema import schema_named, schema_names
from controlplane.wire.query import Computation
from controlplane.wire.results.assembly import (
    QueryData,
    Stored,
    StoredWindow,
    assemble_windows,
    places_of,
)
from controlplane.wire.results.blocks import (
    BlockRows,
    Ref,
    StoredBlocks,
    WindowSelection,
    read_overlapping,
    rows_of,
)
from controlplane.wire.results.places import START_BYTES, key_bytes, start_bytes, start_of
from controlplane.wire.results.rows import HEAD, key_columns, number_of, section_of
from controlplane.wire.results.scripts import PAGE

MAX_WINDOWS: Final = 1000
# A page ends early where its rows are larger: sketches and users' states are not bounded.
MAX_BYTES: Final = 8 * 1024 * 1024
_EARLIEST, _LATEST = -(2**63), 2**63 - 1
# No block has windows between these.
_NO_STARTS: Final = (2**62, -(2**62))


@dataclass(frozen=True, slots=True)
class Range:
    """A range of a query's windows, and the place where its page begins.

    `first_ms` ≤ start ≤ `last_ms`; `key`: all values of one key, in the order of the query's key;
    `after`: the place after which the page begins, as in `WindowsPage.next`.
    """

    first_ms: int = _EARLIEST
    last_ms: int = _LATEST
    key: Sequence[Any] | None = None
    after: bytes = b""
    limit: int = MAX_WINDOWS
    newest_first: bool = True


@dataclass(frozen=True, slots=True)
class WindowsPage:
    """Some windows in order; `next` is the place after which the next begin, empty for none.

    `final_ms`: windows that start up to then are frozen, None if none is; `final_at_ms`: since when
    the frozen ones of the page are final, None if they are not. `has_blocks`: whether the query has
    any blocks.
    """

    windows: list[StoredWindow]
    next: bytes
    final_ms: int | None
    final_at_ms: int | None
    has_blocks: bool = False

    def is_frozen(self, window: StoredWindow) -> bool:
        """Return whether a window is frozen: nothing changes it any more."""
        return self.final_ms is not None and window.row.start_ms <= self.final_ms


def read_page(
    client: "redis.Redis",
    cluster: str,
    query: int,
    computation: Computation,
    wanted: Range,
) -> WindowsPage:
    """Return a page of the windows of a query that are in Redis."""
    return read_pages(client, cluster, {query: (computation, wanted)})[query]


def read_pages(
    client: "redis.Redis",
    cluster: str,
    wanted: Mapping[int, tuple[Computation, Range]],
    page_s: float | None = None,
) -> dict[int, WindowsPage]:
    """Return a page of the windows of each of some queries, each read in one step.

    `page_s`: seconds after which no user's aggregate of a page is begun, as in `user_results`.
    """
    script = client.register_script(PAGE)
    pipe = client.pipeline(transaction=False)
    bounds = {query: _RangeBounds.of(*item) for query, item in wanted.items()}
    for query, element in bounds.items():
        names = keys.page_keys(cluster, query)
        script(keys=names, args=element.arguments(cluster), client=pipe)
    answers: list[Any] = pipe.execute() if bounds else []
    pages, pieces = {}, {}
    for (query, value), answer in zip(bounds.items(), answers, strict=True):
        pages[query], pieces[query] = _page_of(client, cluster, query, value, answer)
    for queries in _alike(bounds, pieces):
        group = [pieces[query] for query in queries]
        result = assemble_windows(bounds[queries[0]].computation, group, page_s)
        for query, windows in zip(queries, result, strict=True):
            pages[query] = replace(pages[query], windows=windows)
    return pages


def _alike(
    bounds: Mapping[int, "_RangeBounds"], pieces: Mapping[int, QueryData]
) -> list[list[int]]:
    """Return the queries that have windows, those with one computation together.

    A query with users' aggregates is a group of its own, as it has its own time limit.
    """
    result: dict[tuple[int, int], list[int]] = {}
    for query, piece in pieces.items():
        if piece.places:
            computation = bounds[query].computation
            apart = query if has_user_aggregates(computation) else 0
            result.setdefault((id(computation), apart), []).append(query)
    return list(result.values())


@dataclass(frozen=True, slots=True)
class _RangeBounds:
    """A range as the script takes it: bounds of members, sections, and the bytes of the key."""

    computation: Computation
    wanted: Range
    least: bytes
    most: bytes
    sections: str
    key: bytes

    @classmethod
    def of(cls, computation: Computation, wanted: Range) -> "_RangeBounds":
        key = b"" if wanted.key is None else bytes_of_key(computation, wanted.key)
        return cls(computation, wanted, *_bounds(wanted), _sections(computation), key)

    @property
    def starts(self) -> tuple[int, int]:
        """Return the first and the last possible start (ms) of windows."""
        first, last = start_of(self.least[1:]), start_of(self.most[1:])
        # A cursor may be after all windows of a start, or before them.
        behind = self.least[:1] == b"(" and self.least[START_BYTES + 1 :][:1] == b"\xff"
        before = self.most[:1] == b"(" and len(self.most) == START_BYTES + 1
        return first + behind, last - before

    def arguments(self, cluster: str) -> list[Any]:
        """Return the arguments of the script."""
        wanted = self.wanted
        return [self.least, self.most, int(wanted.newest_first), max(1, wanted.limit), MAX_BYTES,
                self.sections, self.key, keys.block_prefix(cluster), *self.starts]  # fmt: skip


def _page_of(
    client: "redis.Redis", cluster: str, query: int, bounds: _RangeBounds, answer: Sequence[Any]
) -> tuple[WindowsPage, QueryData]:
    """Return a page without its windows, and the data of its windows."""
    final, final_at, after, members, rows, blocks, edge, moved, moved_to, has_blocks = answer
    computation, wanted = bounds.computation, bounds.wanted
    page = WindowsPage([], after, _int(final), _int(final_at), bool(has_blocks))
    if not members and not blocks:
        return page, QueryData(query, Stored([], {}, {}), BlockRows({}, {}), [])
    names = schema_names(layout_of(computation))
    known = _names_of_forms(client, keys.rows_key(cluster, query), rows, names)
    stored = Stored(members, dict(zip(bounds.sections, rows, strict=True)), known)
    held = StoredBlocks(_blocks(blocks), moved or b"", _int(moved_to))
    is_wanted = partial(_is_wanted, bounds.least, bounds.most, bounds.key)
    some = WindowSelection(*bounds.starts, is_wanted, wanted.limit, wanted.newest_first)
    result = rows_of(computation, query, held, some)
    places, after = _trimmed(places_of(computation, stored, result), after, _int(edge), wanted)
    return replace(page, next=after), QueryData(query, stored, result, places)


def _blocks(values: Sequence[bytes]) -> list[tuple[Ref, bytes]]:
    """Return references and bytes of blocks from name, reference and bytes by turns."""
    parts = zip(values[::3], values[1::3], values[2::3], strict=True)
    return [(Ref.from_bytes(name, ref), data) for name, ref, data in parts if data]


def _is_wanted(least: bytes, most: bytes, key: bytes, place: bytes) -> bool:
    """Return whether a place is within bounds as Redis takes them, and has the key if one is."""
    if key and place[START_BYTES:] != key:
        return False
    low, high = least[1:], most[1:]
    return (place >= low if least[:1] == b"[" else place > low) and (
        place <= high if most[:1] == b"[" else place < high
    )


def _trimmed(
    places: Iterable[bytes], after: bytes, edge: int | None, wanted: Range
) -> tuple[list[bytes], bytes]:
    """Return the places in order that are complete, and the place where the next page begins.

    `after`: the place up to which rows were read, empty for all; `edge`: the start (ms) from which
    blocks were omitted, None for none.
    """
    result = sorted(places, reverse=wanted.newest_first)
    bounds = [after] if after else []
    if edge is not None:
        # The nearest bytes before or after all places with the start at the edge.
        bounds.append(start_bytes(edge + 1) if wanted.newest_first
                      else start_bytes(edge - 1) + b"\xff")  # fmt: skip
    nearest = b""
    if bounds:
        nearest = max(bounds) if wanted.newest_first else min(bounds)
        result = [item for item in result if is_before(item, nearest, wanted.newest_first)]
    if len(result) > wanted.limit:
        result = result[: wanted.limit]
        nearest = result[-1]
    return result, nearest


def is_before(place: bytes, edge: bytes, newest_first: bool) -> bool:
    """Return whether a place is on this side of an edge, in the order of the page, or begins so."""
    begins = place[: len(edge)]
    return begins >= edge if newest_first else begins <= edge


def read_places(
    client: "redis.Redis",
    cluster: str,
    query: int,
    computation: Computation,
    places: Sequence[bytes],
) -> WindowsPage:
    """Return the windows at these places that are in Redis; each is read in one step."""
    if not places:
        return WindowsPage([], b"", None, None)
    sections = _sections(computation)
    script = client.register_script(PAGE)
    pipe = client.pipeline(transaction=False)
    names = keys.page_keys(cluster, query)
    for place in places:
        bounds = b"[" + place, b"[" + place + b"\xff"
        # Without blocks: one may have many places, so they are read once.
        script(
            keys=names,
            args=[*bounds, 0, 1, MAX_BYTES, sections, b"", b"", *_NO_STARTS],
            client=pipe,
        )
    answers: list[Any] = pipe.execute()
    members = [member for answer in answers for member in answer[3]]
    rows = [
        [row for answer in answers for row in answer[4][index]] for index in range(len(sections))
    ]
    known = _names_of_forms(client, names[1], rows, schema_names(layout_of(computation)))
    held = read_overlapping(client, cluster, query, sorted({*map(start_of, places)}))
    whole = WindowSelection(
        start_of(min(places)), start_of(max(places)), frozenset(places).__contains__,
        len(places), newest_first=True,
    )  # fmt: skip
    stored = Stored(members, dict(zip(sections, rows, strict=True)), known)
    result = rows_of(computation, query, held, whole)
    every = sorted(places_of(computation, stored, result))
    (windows,) = assemble_windows(computation, [QueryData(query, stored, result, every)])
    final, final_at = answers[-1][:2]
    return WindowsPage(windows, b"", _int(final), _int(final_at))


def _int(value: bytes | None) -> int | None:
    return int(value) if value else None


def _sections(computation: Computation) -> str:
    """Return the sections that rows of a computation can have, slots first."""
    layout = layout_of(computation)
    # Drop rules add the cells of samples to windows of any computation.
    names = schema_names(layout)[: 3 if layout.sketches else 2]
    return "".join(dict.fromkeys(section_of(name) for name in names))


def bytes_of_key(computation: Computation, key: Sequence[Any]) -> bytes:
    """Return the bytes of a key in places, from its values in the order of the query's key."""
    form = schema_named(schema_names(layout_of(computation))[0])
    return key_bytes(key, [form.arrow.field(name).type for name in key_columns(form)])


def _bounds(wanted: Range) -> tuple[bytes, bytes]:
    """Return the least and the most member as Redis takes them."""
    least = b"[" + start_bytes(max(wanted.first_ms, _EARLIEST))
    # After all members with this start.
    most = b"[" + start_bytes(min(wanted.last_ms, _LATEST)) + b"\xff"
    if not wanted.after:
        return least, most
    whole = wanted.key is not None or len(wanted.after) == START_BYTES
    after = wanted.after[:START_BYTES] if whole else wanted.after
    if wanted.newest_first:
        return least, min(most, b"(" + after, key=lambda bound: bound[1:])
    return max(least, b"(" + after + b"\xff", key=lambda bound: bound[1:]), most


def _names_of_forms(
    client: "redis.Redis", rows_key: str, rows: Sequence[Sequence[bytes]], forms: Sequence[str]
) -> dict[int, str]:
    """Return the names of the state schemas of rows; old rows may have earlier schemas."""
    known = {number_of(name): name for name in forms}
    there = {HEAD.unpack_from(value)[1] for values in rows for value in values if value}
    for number in there - known.keys():
        name = cast("bytes | None", client.hget(rows_key, f"form:{number}"))
        if name is not None:
            known[number] = name.decode()
    return known
