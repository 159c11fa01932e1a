"""After a loss of what was written, the nodes write all open windows again, and only these."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from controlplane.wire.aggregates.finalize import newest_rows
from tests.workers.pipeline.engine.given import changed_rows
from tests.workers.pipeline.engine.warehouse import computation, group_of, readings
from workers.pipeline.engine.advance import advance_state
from workers.pipeline.engine.assignment.subscriptions import Subscription
from workers.pipeline.engine.assignment.tasks import Tasks
from workers.pipeline.engine.final_aggregation import merge_parts
from workers.pipeline.engine.store import MemoryStore

SLIDING = computation({"n": "count(*)", "kinds": "count_distinct(box)"}, window_s=3.0, slide_s=1.0)
FIXED = computation({"heavy": "max(grams)"}, window_s=2.0)
PAIRS = computation({"n": "count(*)"}, key=["a.shelf"], right=[2], on=[["shelf", "shelf"]],
                    where="a.box % 5 = b.box % 5")  # fmt: skip
TASKS = Tasks.of([group_of(SLIDING, [4, 5]), group_of(FIXED, [17]), group_of(PAIRS, [33])])


def rows_of(found: Any) -> dict[str, list[dict[str, Any]]]:
    """Return the newest row of each window by the name of its form, in a fixed order."""
    tables: dict[str, list[tuple[int, Any]]] = {}
    for batch, changed in found:
        for name, form, rows in changed_rows(changed):
            tables.setdefault(name, []).append((batch, (form, rows)))
    kept = {}
    for name, parts in tables.items():
        form = parts[0][1][0]
        merged = newest_rows(form, [(batch, rows) for batch, (_, rows) in parts])
        plain = merged.drop_columns(["batch"]).to_pylist()
        kept[name] = sorted(plain, key=lambda row: str(sorted(row.items(), key=str)))
    return kept


def test_the_rows_of_open_windows_come_again_without_any_record() -> None:
    """And they are those that were written before: nobody can tell that they were lost."""
    store, written = MemoryStore(), []
    for batch in range(6):
        records = readings(90, batch)
        written.append((batch, advance_state(store, TASKS, records, records.newest(), batch)))
    again = advance_state(store, TASKS, None, {}, 6, republish=True)
    before, after = rows_of(written), rows_of([(6, again)])
    assert after, "there are open windows"
    for name, rows in after.items():
        assert rows
        assert all(row in before[name] for row in rows)
    # What is open is what a batch that changes everything would write.
    twice = advance_state(store, TASKS, None, {}, 7, republish=True)
    assert rows_of([(7, twice)]) == after


def test_closed_sliding_windows_are_not_written_from_what_is_left_of_them() -> None:
    """Their panes that open windows do not need are gone."""
    store = MemoryStore()
    tasks = Tasks.of([group_of(SLIDING, [4])])
    for batch in range(6):
        records = readings(90, batch)
        advance_state(store, tasks, records, records.newest(), batch)
    watermarks = max(records.newest().values())
    again = advance_state(store, tasks, None, {}, 6, republish=True)
    starts = [row["pane"] for rows in rows_of([(6, again)]).values() for row in rows]
    assert starts
    assert all(start + 3000 > watermarks - SLIDING.lateness_ms for start in starts)


def test_a_batch_that_republishes_takes_its_records_too() -> None:
    """Rows with them are the same as in a life without a loss."""
    plain, lossy, straight, lost = MemoryStore(), MemoryStore(), [], []
    for batch in range(4):
        records = readings(90, batch)
        straight.append((batch, advance_state(plain, TASKS, records, records.newest(), batch)))
        changed = advance_state(
            lossy, TASKS, records, records.newest(), batch, republish=batch == 3
        )
        lost.append((batch, changed))
    assert rows_of(lost) == rows_of(straight)


@pytest.mark.parametrize("keeps", [True, False])
def test_an_aggregator_adds_a_new_run_to_the_old_one(keeps: bool) -> None:
    """Its row of the earlier run stays: a new run must not write over it with less."""
    store = MemoryStore()
    first = member(incarnation=0)
    found, _ = merge_parts(store, first, {4: parts(incarnation=0, batch=0)}, {})
    second, _ = merge_parts(
        store if keeps else MemoryStore(),
        member(incarnation=1),
        {4: parts(incarnation=1, batch=1)},
        {},
    )
    incarnations = [sorted(set(rows["run"].to_pylist())) for _, _, rows in (*found, *second)]
    assert incarnations == [[0], [1]]
    alone, _ = merge_parts(
        MemoryStore(), member(incarnation=1), {4: parts(incarnation=1, batch=1)}, {}
    )
    assert second[0][2].sort_by("pane").equals(alone[0][2].sort_by("pane"))


def group(incarnation: int) -> Any:
    made = group_of(FIXED, [4])
    one = made.subscriptions[0]
    kept = Subscription(one.query, incarnation, one.streams, one.tasks, one.owned)
    return type(made).of(made.computation, [kept], made.intake)


def member(incarnation: int) -> Mapping[int, Any]:
    return Tasks.of([group(incarnation)]).members


def parts(incarnation: int, batch: int) -> dict[str, list[pa.Table]]:
    records = readings(60, batch)
    tasks = Tasks.of([group(incarnation)])
    changed = advance_state(MemoryStore(), tasks, records, records.newest(), batch)
    return {name: [rows] for name, _, rows in changed_rows(changed)}
