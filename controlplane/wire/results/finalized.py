"""Finalized windows: rows of results from the accumulators that nodes emit."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from controlplane.wire.aggregates.finalize import finalize, plain_lists, slot_values
from controlplane.wire.aggregates.layout import layout_of
from controlplane.wire.aggregates.state_schema import schema_named, schema_names
from controlplane.wire.aggregates.user_results import Outcome
from controlplane.wire.language.tree import Column, Kind
from controlplane.wire.query import STREAM, Computation
from controlplane.wire.results.json_values import Raised, arrays_of
from controlplane.wire.results.parts import Parts, encode, entry, tables_of
from controlplane.wire.results.places import PART_BYTES, START_BYTES, members_of
from controlplane.wire.results.rows import SLOTS, key_columns, pack_rows


@dataclass(frozen=True, slots=True)
class ResultQuery:
    """What determines the results of a query.

    `is_merged`: a window may have several parts (streams, incarnations, tasks of a join) or
    sketches, so that the parts of a change are merged with those that the row has.
    """

    computation: Computation
    is_merged: bool

    @property
    def has_sketches(self) -> bool:
        """Return whether a value depends on sketches or users' states."""
        return bool(layout_of(self.computation).sketches)

    @classmethod
    def of(cls, computation: Computation, streams: int, incarnation: int) -> "ResultQuery":
        """Return a query with parts of so many streams, in its present incarnation."""
        by_stream = any(item == Column(STREAM, Kind.INT) for _, item in computation.key)
        has_parts = streams > 1 and not by_stream
        has_sketches = bool(layout_of(computation).sketches)
        return cls(
            computation,
            has_parts or incarnation > 0 or has_sketches or computation.join is not None,
        )


class StoredWindow(NamedTuple):
    """A row of `results_window` (`tables.py`), without what its write adds."""

    query: int
    start_ms: int
    key: bytes
    key_json: str
    value_json: str
    records: int
    sample: str | None
    state: bytes
    cells: bytes | None


Place = tuple[int, int, bytes]


def plain_rows(name: str, table: Any, queries: Mapping[int, ResultQuery]) -> list[StoredWindow]:
    """Return the windows of slots that have one part each, of any queries with one schema."""
    table, groups = _by_computation(table, queries)
    form = schema_named(name)
    members = members_of(table, key_columns(form))
    packed = pack_rows(name, form, table, [1] * len(members), 0)
    columns = plain_lists(table)
    owners = np.asarray(table["query"]).tolist()
    rows: list[StoredWindow] = []
    for computation, first, stop in groups:
        some = {column: values[first:stop] for column, values in columns.items()}
        keys, outcomes = slot_values(computation, some)
        values = [[Raised(value.error) if type(value) is Outcome else value for value in column]
                  for column in outcomes]  # fmt: skip
        key_json, value_json = arrays_of(keys, stop - first), arrays_of(values, stop - first)
        windows = zip(
            owners[first:stop], some["pane"], members[first:stop], key_json, value_json,
            some["s0"], packed[first:stop], strict=True,
        )  # fmt: skip
        for query, start_ms, member, keys_text, values_text, records, slots in windows:
            key, part = member[START_BYTES:-PART_BYTES], member[-PART_BYTES:]
            state = entry(part, SLOTS, slots)
            rows.append(
                StoredWindow(
                    query, start_ms, key, keys_text, values_text, records, None, state, None
                )
            )
    return rows


def _by_computation(
    table: Any, queries: Mapping[int, ResultQuery]
) -> tuple[Any, list[tuple[Computation, int, int]]]:
    """Return a table in the order of computations, and first and stop of the rows of each."""
    known, query_of = np.unique(np.asarray(table["query"]), return_inverse=True)
    numbers: dict[Computation, int] = {}
    number = [numbers.setdefault(queries[query].computation, len(numbers))
              for query in known.tolist()]  # fmt: skip
    row_numbers = np.array(number, np.int64)[query_of]
    order = np.argsort(row_numbers, kind="stable")
    if len(numbers) > 1:
        table = table.take(pa.array(order)).combine_chunks()
    edges = np.searchsorted(row_numbers[order], np.arange(len(numbers) + 1)).tolist()
    bounds = zip(numbers, pairwise(edges), strict=True)
    return table, [(computation, first, stop) for computation, (first, stop) in bounds]


def merged_rows(
    windows: Mapping[Place, Parts], queries: Mapping[int, ResultQuery], names: Mapping[int, str]
) -> list[StoredWindow]:
    """Return windows of merged parts; every window has one at least."""
    groups: dict[int, list[Place]] = {}
    for place in windows:
        groups.setdefault(id(queries[place[0]].computation), []).append(place)
    rows: list[StoredWindow] = []
    for places in groups.values():
        computation = queries[places[0][0]].computation
        rows += _merged(computation, places, [windows[place] for place in places], names)
    return rows


def _merged(
    computation: Computation,
    places: Sequence[Place],
    parts: Sequence[Parts],
    names: Mapping[int, str],
) -> list[StoredWindow]:
    tables = tables_of(computation, parts, names)
    slots = tables[schema_names(layout_of(computation))[0]]
    records = np.zeros(len(places), np.int64)
    np.add.at(records, np.asarray(slots["pane"]), np.asarray(slots["s0"]))
    done = finalize(computation, tables)
    values = [
        [Raised(window.errors[name]) if name in window.errors else window.values[name]
         for window in done] for name, _ in computation.aggregates
    ]  # fmt: skip
    keys = [[window.key[name] for window in done] for name, _ in computation.key]
    texts = zip(done, arrays_of(keys, len(done)), arrays_of(values, len(done)), strict=True)
    rows = []
    for window, key_json, value_json in texts:
        index, sampled = window.start_ms, window.sampled
        sample = None if sampled is None else json.dumps([sampled.missing, sampled.variance])
        state, cells = encode(parts[index])
        count = int(records[index])
        rows.append(StoredWindow(*places[index], key_json, value_json, count, sample, state, cells))
    return rows
