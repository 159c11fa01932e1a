"""Columns that become wider while windows are open: state as if they had always been so.

A column of whole numbers may become one of decimals or floats, one of decimals one of floats. Then
the queries over it keep their rows in another state schema, and name the cells of `top_k` by other
values. In the first batch under the wider schema each node converts its rows to the new state
schemas, and emits all open windows again.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import numpy as np

from controlplane.wire.aggregates.layout import ARROW, AggregateSchema, layout_of
from controlplane.wire.aggregates.sketches import decode_floats
from controlplane.wire.aggregates.state_schema import (
    StateSchema,
    can_convert,
    convert_rows,
    is_pairs,
    pairs_name,
    schema_named,
    schema_names,
)
from controlplane.wire.language.tree import Kind
from controlplane.wire.query import Computation
from workers.pipeline.engine.aggregation.panes import cell_names
from workers.pipeline.engine.arrow import pa, pc
from workers.pipeline.engine.assignment.tasks import Member, Tasks, counted_by, counted_in
from workers.pipeline.engine.evaluation.records import sample_of
from workers.pipeline.engine.failures.fault import FaultReason
from workers.pipeline.engine.failures.isolation import IMPORT, run_stage
from workers.pipeline.engine.kernels.types import in_kind
from workers.pipeline.engine.storage.pages import PAGES, SIZES, Pages
from workers.pipeline.engine.storage.state_transfer import merge_into_pages
from workers.pipeline.engine.storage.watermarks import read_watermarks
from workers.pipeline.engine.storage.window_state import MergedState, changed_windows, is_closed
from workers.pipeline.engine.store import Store, read_json, write_json

KINDS: Final = "kinds"
# By place among the aggregates of a query, the kind of what a `top_k` over numbers counts.
Counted = Mapping[int, Kind]
# Windows by the name of their state schema, and the state schema.
Window = tuple[str, StateSchema, Any]


@dataclass(frozen=True)
class Widening:
    """The first batch with other kinds of columns; `counted`: what each query counted before."""

    counted: Mapping[int, Counted] = field(default_factory=dict)

    def to_current_schema(self, name: str, rows: Any, query: int, computation: Computation) -> Any:
        """Return rows of a query's former state schema as they are in its present one."""
        rows = convert_rows(rows, name, current_schema_name(name, computation))
        if name[0] == "c":
            rows = _renamed(rows, self.counted.get(query, {}), counted_by(computation))
        return rows

    def convert_parts(
        self, tables: Mapping[str, Sequence[Any]], query: int, computation: Computation
    ) -> dict[str, list[Any]]:
        """Return parts of a query's windows by the names of their present state schemas."""
        result: dict[str, list[Any]] = {}
        for name, some in tables.items():
            into = result.setdefault(current_schema_name(name, computation), [])
            into += [self.to_current_schema(name, rows, query, computation) for rows in some]
        return result

    def migrate(self, store: Store, tasks: Tasks, faults: dict[int, FaultReason]) -> list[Window]:
        """Convert the state of a node's tasks to the present state schemas.

        Return windows with less than no records, which take away those that were emitted under
        keys of another kind. A query whose rows cannot be converted gets into `faults`.
        """
        retired: list[Window] = []
        sizes: dict[str, int] = read_json(store, SIZES)
        for name in sorted({key.rpartition("/")[0] for key in sizes}):
            members = {
                query: member
                for query, member in tasks.members.items()
                if self._changes(name, query, member)
            }
            if members:
                pages = Pages(store, schema_named(name), name, sizes)
                retired += self._migrate_form(pages, tasks, members, faults)
        write_json(store, SIZES, sizes)
        return retired

    def _changes(self, name: str, query: int, member: Member) -> bool:
        """Return whether rows of a state schema, if the query has some there, must be converted."""
        assert member.computation is not None
        if current_schema_name(name, member.computation) != name:
            return True
        before = self.counted.get(query)
        return name[0] == "c" and bool(before) and before != counted_by(member.computation)

    def _migrate_form(
        self,
        pages: Pages,
        tasks: Tasks,
        members: Mapping[int, Member],
        faults: dict[int, FaultReason],
    ) -> Iterator[Window]:
        every = range(PAGES)
        rows = pages.load(every)
        owner = np.asarray(rows["query"])
        selected = np.isin(owner, list(members))
        if not selected.any():
            return
        pages.save(rows.filter(pa.array(~selected)), every)
        for query in np.unique(owner[selected]).tolist():
            some, computation = rows.filter(pa.array(owner == query)), members[query].computation
            assert computation is not None
            yield from _retired(pages, some, members[query])
            work = partial(self.to_current_schema, pages.name, some, query, computation)
            for new in run_stage(IMPORT, [query], work, faults, partial(_sample, some)):
                target = current_schema_name(pages.name, computation)
                into = Pages(pages.store, schema_named(target), target, pages.sizes)
                merge_into_pages(into, tasks, new, faults)


def _sample(rows: Any, _error: Exception) -> str:
    return sample_of(rows)


def _retired(pages: Pages, rows: Any, member: Member) -> Iterator[Window]:
    """Yield the open windows that a query emitted under keys of another kind, to be taken away.

    They have less than no records, also where an aggregator node adds them up.
    """
    computation, form = member.computation, pages.form
    assert computation is not None
    if pages.name[0] != "s" or _keys_of(pages.name) == _keys_of(
        schema_names(layout_of(computation))[0]
    ):
        return
    windows = changed_windows(
        form, MergedState(rows, np.ones(len(rows), np.bool_)), computation.window
    )
    closing = {member.subscription.query: member.closing}
    open_ = windows.filter(pa.array(~is_closed(windows, closing, read_watermarks(pages.store))))
    less = pa.array(np.full(len(open_), -1))
    yield pages.name, form, open_.set_column(form.arrow.get_field_index("s0"), "s0", less)


def _keys_of(name: str) -> tuple[Kind, ...]:
    return AggregateSchema.named(name.partition("|")[2]).keys


def detect_widening(
    store: Store, kinds: int, tasks: Tasks, merges: Mapping[int, Member]
) -> Widening | None:
    """Return the columns that became wider since the batch before, or None.

    `kinds`: a number of the kinds of all columns of the streams, which is stored.
    """
    counted = [*tasks.counted, *counted_in(merges)]
    written = json.dumps([kinds, counted]).encode()
    data = store.get(KINDS)
    if data == written:
        return None
    store.put(KINDS, written)
    before, known = json.loads(data) if data else (kinds, [])
    if before == kinds:
        return None
    return Widening({query: {index: Kind(kind) for index, kind in pairs} for query, pairs in known})


def current_schema_name(name: str, computation: Computation) -> str:
    """Return the present schema name for rows of a query in the schema `name`."""
    if is_pairs(name):
        wanted = pairs_name(computation) if computation.join is not None else name
    else:
        wanted = next(
            schema_name
            for schema_name in schema_names(layout_of(computation))
            if schema_name[0] == name[0]
        )
    return wanted if can_convert(name, wanted) else name


def _renamed(cells: Any, before: Counted, now: Counted) -> Any:
    """Return the cells of sketches with those of `top_k` named by values of the present kind."""
    place = np.asarray(cells["a"])
    for index, kind in before.items():
        wanted = now.get(index, kind)
        selected = place == index
        if wanted is kind or not selected.any():
            continue
        part, rest = cells.filter(pa.array(selected)), cells.filter(pa.array(~selected))
        number, text = cell_names(in_kind(_values(part, kind), wanted), wanted)
        for name, column in (("c", number), ("t", text)):
            field_ = cells.schema.field(name)
            new = pa.nulls(len(part), field_.type) if column is None else pa.array(column)
            part = part.set_column(cells.schema.get_field_index(name), field_, new)
        cells = pa.concat_tables([rest, part])
        place = np.asarray(cells["a"])
    return cells


def _values(cells: Any, kind: Kind) -> Any:
    """Return the values that name cells."""
    if kind is Kind.DECIMAL:
        return pc.cast(cells["t"], ARROW[kind]).combine_chunks()
    numbers = cells["c"].combine_chunks()
    return numbers if kind is Kind.INT else pa.array(decode_floats(numbers.to_numpy()))
