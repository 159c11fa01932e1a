"""Reading: pages of whole windows, each in one step, in time that follows from the page alone."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa
import redis

from controlplane.wire import keys
from controlplane.wire.finishing import WindowRow, finished
from controlplane.wire.forms import Form, converted, named, names_of
from controlplane.wire.layout import layout_of
from controlplane.wire.query import Computation
from controlplane.wire.results.places import (
    PART_BYTES,
    START_BYTES,
    key_bytes,
    place_of,
    start_bytes,
    start_of,
)
from controlplane.wire.results.rows import (
    HEAD,
    SLOTS,
    key_columns,
    number_of,
    section_of,
    unpacked,
    with_identity,
)
from controlplane.wire.results.scripts import PAGE

MAX_WINDOWS: Final = 1000
# A page ends early where its rows are larger: sketches and users' states are not bounded.
MAX_BYTES: Final = 8 * 1024 * 1024
_EARLIEST, _LATEST = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class Range:
    """Which windows of a query are wanted, and from where on.

    `first_ms` ≤ start ≤ `last_ms`; `key`: all values of one key, in the order of the query's key;
    `after`: the place behind which the page begins, as `WindowsPage.next` has it.
    """

    first_ms: int = _EARLIEST
    last_ms: int = _LATEST
    key: Sequence[Any] | None = None
    after: bytes = b""
    limit: int = MAX_WINDOWS
    newest_first: bool = True


@dataclass(frozen=True, slots=True)
class StoredWindow:
    """A window in Redis: its place, its members, and its values."""

    place: bytes
    members: tuple[bytes, ...]
    row: WindowRow


@dataclass(frozen=True, slots=True)
class WindowsPage:
    """Some windows in order; `next` is the place behind which the next begin, empty for none.

    `final_ms`: windows that start up to then take no change any more, None before the first;
    `final_at_ms`: since when those of them that are here are final, None where they are not.
    """

    windows: list[StoredWindow]
    next: bytes
    final_ms: int | None
    final_at_ms: int | None

    def is_frozen(self, window: StoredWindow) -> bool:
        """Return whether a window takes no change any more."""
        return self.final_ms is not None and window.row.start_ms <= self.final_ms


def read_page(
    client: "redis.Redis",
    cluster: str,
    query: int,
    computation: Computation,
    wanted: Range,
    page_s: float | None = None,
) -> WindowsPage:
    """Return a page of the windows of a query that are in Redis.

    `page_s`: seconds after which no user's aggregate is begun, as in `user_results`.
    """
    forms = names_of(layout_of(computation))
    sections = _sections(computation)
    key = b"" if wanted.key is None else bytes_of_key(computation, wanted.key)
    arguments: list[Any] = [*_bounds(wanted), int(wanted.newest_first), max(1, wanted.limit)]
    arguments += [MAX_BYTES, sections, key]
    names = [keys.windows_key(cluster, query), keys.rows_key(cluster, query)]
    final, final_at, after, members, rows = cast(
        "list[Any]", client.register_script(PAGE)(keys=names, args=arguments)
    )
    known = _names_of_forms(client, names[1], rows, forms)
    sorted_rows = dict(zip(sections, rows, strict=True))
    windows = _windows(computation, query, members, sorted_rows, known, page_s)
    return WindowsPage(windows, after, _int(final), _int(final_at))


def read_places(
    client: "redis.Redis",
    cluster: str,
    query: int,
    computation: Computation,
    places: Sequence[bytes],
) -> WindowsPage:
    """Return the windows at these places that are in Redis; each is read in one step."""
    sections = _sections(computation)
    script = client.register_script(PAGE)
    pipe = client.pipeline(transaction=False)
    names = [keys.windows_key(cluster, query), keys.rows_key(cluster, query)]
    for place in places:
        bounds = b"[" + place, b"[" + place + b"\xff"
        script(keys=names, args=[*bounds, 0, 1, MAX_BYTES, sections, b""], client=pipe)
    answers: list[Any] = pipe.execute() if places else []
    if not answers:
        return WindowsPage([], b"", None, None)
    members = [member for answer in answers for member in answer[3]]
    rows = [[row for answer in answers for row in answer[4][at]] for at in range(len(sections))]
    known = _names_of_forms(client, names[1], rows, names_of(layout_of(computation)))
    windows = _windows(computation, query, members, dict(zip(sections, rows, strict=True)), known)
    final, final_at = answers[-1][:2]
    return WindowsPage(windows, b"", _int(final), _int(final_at))


def read_windows(
    client: "redis.Redis", cluster: str, query: int, computation: Computation
) -> list[WindowRow]:
    """Return all windows of a query that are in Redis, oldest first."""
    return [
        window.row
        for page in pages(client, cluster, query, computation, Range(newest_first=False))
        for window in page.windows
    ]


def pages(
    client: "redis.Redis", cluster: str, query: int, computation: Computation, wanted: Range
) -> Iterator[WindowsPage]:
    """Yield one page after the other, up to the end of the range."""
    while True:
        page = read_page(client, cluster, query, computation, wanted)
        yield page
        if not page.next:
            return
        wanted = replace(wanted, after=page.next)


def has_results(client: "redis.Redis", cluster: str, queries: Sequence[int]) -> set[int]:
    """Return which of `queries` have seen a record."""
    pipe = client.pipeline(transaction=False)
    for query in queries:
        pipe.hexists(keys.rows_key(cluster, query), "batch")
    return {query for query, found in zip(queries, pipe.execute(), strict=True) if found}


def _int(value: bytes | None) -> int | None:
    return int(value) if value else None


def _sections(computation: Computation) -> str:
    """Return the sections that rows of a computation can have, slots first."""
    layout = layout_of(computation)
    names = names_of(layout) if layout.sketches else names_of(layout)[:1]
    return "".join(dict.fromkeys(section_of(name) for name in names))


def bytes_of_key(computation: Computation, key: Sequence[Any]) -> bytes:
    """Return what a key is in places, from its values in the order of the query's key."""
    form = named(names_of(layout_of(computation))[0])
    return key_bytes(key, [form.schema.field(name).type for name in key_columns(form)])


def _bounds(wanted: Range) -> tuple[bytes, bytes]:
    """Return the least and the most member as Redis takes them."""
    least = b"[" + start_bytes(max(wanted.first_ms, _EARLIEST))
    # Behind all members that begin with this start.
    most = b"[" + start_bytes(min(wanted.last_ms, _LATEST)) + b"\xff"
    if not wanted.after:
        return least, most
    whole = wanted.key is not None or len(wanted.after) == START_BYTES
    after = wanted.after[:START_BYTES] if whole else wanted.after
    if wanted.newest_first:
        return least, min(most, b"(" + after, key=_bound)
    return max(least, b"(" + after + b"\xff", key=_bound), most


def _bound(text: bytes) -> bytes:
    return text[1:]


def _names_of_forms(
    client: "redis.Redis", rows_key: str, rows: Sequence[Sequence[bytes]], forms: Sequence[str]
) -> dict[int, str]:
    """Return the names of the forms in which rows were written; seldom others than now."""
    known = {number_of(name): name for name in forms}
    there = {HEAD.unpack_from(value)[1] for values in rows for value in values if value}
    for number in there - known.keys():
        name = cast("bytes | None", client.hget(rows_key, f"form:{number}"))
        if name is not None:
            known[number] = name.decode()
    return known


def _windows(
    computation: Computation,
    query: int,
    members: Sequence[bytes],
    rows: Mapping[str, Sequence[bytes]],
    known: Mapping[int, str],
    page_s: float | None = None,
) -> list[StoredWindow]:
    if not members:
        return []
    grouped: dict[bytes, list[bytes]] = {}
    for member in members:
        grouped.setdefault(place_of(member), []).append(member)
    tables = _tables(computation, query, members, rows, known)
    # They come in no order, and their keys as people read them: the number of the place, which
    # stands for the start, says which is which.
    found = {row.start_ms: row for row in finished(computation, tables, page_s)}
    windows = []
    for number, (place, parts) in enumerate(grouped.items()):
        row = found[number]
        started = replace(row, start_ms=start_of(place))
        windows.append(StoredWindow(place, tuple(parts), started))
    return windows


def _tables(
    computation: Computation,
    query: int,
    members: Sequence[bytes],
    rows: Mapping[str, Sequence[bytes]],
    known: Mapping[int, str],
) -> dict[str, Any]:
    """Return the rows as `finished` takes them: by the form's name, with the batch of each."""
    identity = _identity(query, members)
    found: dict[str, Any] = {}
    for name in names_of(layout_of(computation)):
        values = rows.get(section_of(name), ())
        if not any(values):
            continue
        form = named(name)
        there = [at for at, value in enumerate(values) if value]
        table, lengths, batches = _decoded(name, form, [values[at] for at in there], known)
        if section_of(name) == SLOTS:
            identity |= {column: table[column] for column in key_columns(form)}
        rows_of = np.repeat(there, lengths)
        mine = {column: pa.chunked_array([_whole(all_).take(pa.array(rows_of))])
                for column, all_ in identity.items()
                if section_of(name) != SLOTS or column not in table.column_names}  # fmt: skip
        whole = with_identity(form, table, mine)
        found[name] = whole.append_column("batch", pa.array(np.repeat(batches, lengths)))
    return found


def _whole(column: Any) -> Any:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _decoded(
    name: str, form: Form, values: Sequence[bytes], known: Mapping[int, str]
) -> tuple[Any, list[int], list[int]]:
    """Return the columns of rows, of whatever form they were written in; lengths and batches."""
    numbers = {HEAD.unpack_from(value)[1] for value in values}
    if numbers == {number_of(name)}:
        return unpacked(name, form, values)
    # A column of the stream became wider: rows from before are of another type.
    tables, lengths, batches = [], [0] * len(values), [0] * len(values)
    order: list[int] = []
    for number in sorted(numbers):
        mine = [at for at, value in enumerate(values) if HEAD.unpack_from(value)[1] == number]
        written = known[number]
        table, some, of = unpacked(written, named(written), [values[at] for at in mine])
        tables.append(converted(table, written, name))
        order += [at for at, length in zip(mine, some, strict=True) for _ in range(length)]
        for at, length, batch in zip(mine, some, of, strict=True):
            lengths[at], batches[at] = length, batch
    by_value: Any = np.argsort(order, kind="stable")
    return pa.concat_tables(tables).take(by_value), lengths, batches


def _identity(query: int, members: Sequence[bytes]) -> dict[str, Any]:
    """Return what the members say of each row, with the number of the place as its start."""
    number: dict[bytes, int] = {}
    places = [number.setdefault(place_of(one), len(number)) for one in members]
    parts = np.frombuffer(b"".join(one[-PART_BYTES:] for one in members), np.uint8)
    parts = parts.reshape(len(members), PART_BYTES)
    stream = np.ascontiguousarray(parts[:, 8:]).view(">u8").reshape(-1) ^ np.uint64(1 << 63)
    return {
        "query": pa.array(np.full(len(members), query, np.int64)),
        "run": pa.array(_numbers(parts[:, :4], ">u4")),
        "task": pa.array(_numbers(parts[:, 4:8], ">u4")),
        "stream": pa.array(stream.astype(np.uint64).view(np.int64)),
        "pane": pa.array(places, pa.int64()),
    }


def _numbers(part: Any, kind: str) -> Any:
    return np.ascontiguousarray(part).view(kind).reshape(-1).astype(np.int64)
