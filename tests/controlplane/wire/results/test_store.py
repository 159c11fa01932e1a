"""The result store is right for any window, and what is read of it costs what is read."""

import threading
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import redis

from controlplane.wire import keys
from controlplane.wire.aggregates.layout import layout_of
from controlplane.wire.aggregates.state_schema import schema_names
from controlplane.wire.query import computation_of
from controlplane.wire.query_text import QueryText
from controlplane.wire.results import final_windows
from controlplane.wire.results.places import key_bytes, members_of, place_of
from controlplane.wire.results.read import Range, read_page, read_pages
from controlplane.wire.results.write import WindowChanges, write
from tests.support.stored import BY_METER, COLUMNS, HOUR_MS, changes, computed
from tests.support.sunk import report, write_batch
from tests.support.whole_results import pages, read_windows
from tests.workers.pipeline.engine.storage.test_window_state import COLUMNS as ENGINE_COLUMNS
from tests.workers.pipeline.engine.storage.test_window_state import records_of
from tests.workers.pipeline.engine.test_advance import Memory
from workers.pipeline.engine.advance import advance_state
from workers.pipeline.engine.assignment.subscriptions import NodeGroup, Subscription
from workers.pipeline.engine.assignment.tasks import Tasks

METERS = computed()


def put(client: "redis.Redis", batch: int, *rows: dict[str, Any], query: int = 9) -> None:
    write(client, "c", batch, changes(METERS, query, rows))


def totals(client: "redis.Redis", query: int = 9) -> dict[tuple[int, Any], int]:
    windows = read_windows(client, "c", query, METERS)
    return {(row.start_ms, row.key["meter"]): row.values["n"] for row in windows}


def test_queries_are_read_together_as_each_for_itself(redis_client: "redis.Redis") -> None:
    """Equal windows and keys of several queries stay apart, in parts and across pages."""
    draw = np.random.default_rng(5)
    for query in range(1, 8):
        for batch in (1, 2):
            rows = [{"pane": int(draw.integers(0, 4)) * HOUR_MS, "k0": f"m{at}",
                     "task": int(draw.integers(0, 2)), "s0": int(draw.integers(1, 9))}
                    for at in range(query)]  # fmt: skip
            put(redis_client, batch, *rows, query=query)
    asked = {query: (METERS, Range(limit=4 if query % 2 else 1000)) for query in range(9)}
    assert len(read_pages(redis_client, "c", asked)[6].windows) > 1
    assert read_pages(redis_client, "c", asked) == {
        query: read_page(redis_client, "c", query, *one) for query, one in asked.items()
    }


def test_a_long_window_keeps_its_quiet_keys(redis_client: "redis.Redis") -> None:
    """A window that is open for 1,500 changed batches shows each key that it ever had."""
    quiet = [{"k0": f"m{at}", "s0": at + 1} for at in range(500)]
    put(redis_client, 1, *quiet)
    for batch in range(2, 1_500):
        put(redis_client, batch, {"k0": "busy", "s0": batch})
    assert totals(redis_client) == {
        **{(0, f"m{at}"): at + 1 for at in range(500)},
        (0, "busy"): 1_499,
    }


def test_an_hour_through_a_thousand_batches_of_the_engine(redis_client: "redis.Redis") -> None:
    """Event time faster than the clock: three hours in 1,000 batches, most keys quiet in most."""
    draw = np.random.default_rng(13)
    text = QueryText({"n": "count(*)", "high": "max(speed)"}, 3600.0, key=("car",), lateness_s=0)
    computation = computation_of(text, ENGINE_COLUMNS)
    one = Subscription(9, 0, (1, 2), 1, np.array([True]))
    tasks, store = Tasks.of([NodeGroup.of(computation, [one])]), Memory()
    count: Counter[tuple[int, int]] = Counter()
    for batch in range(1_000):
        now_ms = batch * 3 * HOUR_MS // 1_000
        # The others are heard once, in the first minute of each hour.
        cars = [7] if now_ms % HOUR_MS > 60_000 else [7, *draw.integers(100, 160, 20).tolist()]
        rows = [(1 + batch % 2, now_ms, car, None, int(draw.integers(0, 90))) for car in cars]
        count.update((now_ms // HOUR_MS * HOUR_MS, car) for car in cars)
        newest = {1 + batch % 2: now_ms}
        changed = advance_state(store, tasks, records_of(rows, None), newest, batch)
        write_batch(redis_client, "c", report(batch, 0), changed)
    windows = read_windows(redis_client, "c", 9, computation)
    assert {(row.start_ms, row.key["car"]): row.values["n"] for row in windows} == dict(count)


@pytest.mark.parametrize("newest_first", [False, True])
def test_pages_go_through_all_windows_once(
    redis_client: "redis.Redis", *, newest_first: bool
) -> None:
    """In order, whole windows only, and the cursor of one page begins the next."""
    names = (None, "", "a", "a\0b", "ab", "ä" * 300, "ä" * 299 + "x")
    rows = [
        {"pane": start * HOUR_MS, "k0": key, "s0": 1, "stream": stream, "task": stream % 3}
        for start in range(-3, 30)
        for key in names
        for stream in range(5)
    ]
    put(redis_client, 1, *rows)
    wanted = Range(limit=20, newest_first=newest_first)
    found = list(pages(redis_client, "c", 9, METERS, wanted))
    assert [len(page.windows) for page in found] == [20] * 11 + [11]
    windows = [window for page in found for window in page.windows]
    places = [window.place for window in windows]
    assert places == sorted(set(places), reverse=newest_first)
    starts = [window.row.start_ms for window in windows]
    assert starts == sorted(starts, reverse=newest_first)
    assert {window.row.parts for window in windows} == {5}
    assert {window.row.values["n"] for window in windows} == {5}
    assert Counter(window.row.key["meter"] for window in windows) == dict.fromkeys(names, 33)


def test_a_range_and_a_key_are_found_without_the_others(redis_client: "redis.Redis") -> None:
    rows = [
        {"pane": start * HOUR_MS, "k0": f"m{key}", "s0": key}
        for start in range(200)
        for key in range(40)
        if key != 17 or start % 3 == 0
    ]
    put(redis_client, 1, *rows)
    wanted = Range(10 * HOUR_MS, 99 * HOUR_MS, ("m17",), limit=7)
    for newest_first in (False, True):
        some = pages(redis_client, "c", 9, METERS, replace(wanted, newest_first=newest_first))
        found = [(w.row.start_ms // HOUR_MS, w.row.key["meter"]) for p in some for w in p.windows]
        expected = [(start, "m17") for start in range(12, 100, 3)]
        assert found == (expected[::-1] if newest_first else expected)
    nobody = read_page(redis_client, "c", 9, METERS, Range(key=("m99",)))
    assert (nobody.windows, nobody.next) == ([], b"")
    hour = read_page(redis_client, "c", 9, METERS, Range(5 * HOUR_MS, 5 * HOUR_MS))
    assert len(hour.windows) == 39


def test_a_reader_sees_all_of_a_nodes_batch_or_nothing(
    redis_client: "redis.Redis", redis_server: str
) -> None:
    """While a node writes 4,000 windows again and again, every page is of one batch."""
    stop, seen, torn = threading.Event(), set(), []

    def look() -> None:
        with redis.Redis.from_url(redis_server) as own:
            while not stop.is_set():
                page = read_page(own, "c", 9, METERS, Range(limit=1000, newest_first=False))
                batches = {window.row.batch for window in page.windows}
                seen.update(batches)
                if len(batches) > 1 or len(page.windows) not in (0, 1000):
                    torn.append(batches)

    thread = threading.Thread(target=look)
    thread.start()
    rows = [{"pane": at % 40 * HOUR_MS, "k0": f"m{at}", "s0": 1} for at in range(4_000)]
    try:
        for batch in range(1, 30):
            put(redis_client, batch, *rows)
    finally:
        stop.set()
        thread.join()
    assert not torn
    assert len(seen) > 2


def test_replays_in_any_order_leave_the_newest(redis_client: "redis.Redis") -> None:
    draw = np.random.default_rng(1)
    for batch in [*range(1, 40), *draw.permutation(np.arange(1, 40)).tolist()]:
        rows = [{"k0": f"m{at}", "s0": batch} for at in range(5) if batch % (at + 1) == 0]
        put(redis_client, batch, *rows)
    assert totals(redis_client) == {(0, f"m{at}"): 39 // (at + 1) * (at + 1) for at in range(5)}


def test_final_windows_take_no_change(redis_client: "redis.Redis") -> None:
    """Neither from a replay nor from a stream that was thought idle; what came is counted."""
    put(redis_client, 1, {"k0": "a", "s0": 1}, {"pane": HOUR_MS, "k0": "a", "s0": 1})
    assert final_windows.freeze(redis_client, "c", {9: 0, 10: 0}, 5_000) == {9: 1, 10: 0}
    assert final_windows.freeze(redis_client, "c", {9: HOUR_MS}, 6_000) == {9: final_windows.BEHIND}
    put(redis_client, 2, {"k0": "a", "s0": 2}, {"pane": HOUR_MS, "k0": "a", "s0": 2})
    assert totals(redis_client) == {(0, "a"): 1, (HOUR_MS, "a"): 2}
    page = read_page(redis_client, "c", 9, METERS, Range(last_ms=0))
    assert (page.final_ms, page.final_at_ms) == (0, 5_000)
    gone = page.windows[0]
    final_windows.remove_all(redis_client, "c", {9: (gone.members, gone.place)})
    assert final_windows.freeze(redis_client, "c", {9: -HOUR_MS}, 7_000) == {9: 0}
    put(redis_client, 3, {"k0": "a", "s0": 9})
    assert totals(redis_client) == {(HOUR_MS, "a"): 2}
    assert redis_client.hget(keys.rows_key("c", 9), "ignored") == b"2"
    assert redis_client.zcard(keys.windows_key("c", 9)) == 1


def test_188_000_windows_are_read_page_by_page(redis_client: "redis.Redis") -> None:
    rows = [{"k0": f"m{at}", "s0": 1} for at in range(4_000)]
    ((name, table),) = changes(METERS, 9, rows).tables
    at = table.schema.get_field_index("pane")
    for hour in range(47):
        starts = pa.array(np.full(len(rows), hour * HOUR_MS))
        write(
            redis_client, "c", hour, WindowChanges([(name, table.set_column(at, "pane", starts))])
        )
    page = read_page(redis_client, "c", 9, METERS, Range(limit=1000))
    assert len(page.windows) == 1000
    last = read_page(redis_client, "c", 9, METERS, Range(limit=1000, newest_first=False))
    assert {window.row.start_ms for window in last.windows} == {0}
    count, after = 0, b""
    for _ in range(5):
        page = read_page(redis_client, "c", 9, METERS, Range(limit=1000, after=after))
        count, after = count + len(page.windows), page.next
    assert count == 5_000
    assert page.windows[-1].row.start_ms == 45 * HOUR_MS


def test_rows_from_before_a_column_became_wider_are_read(redis_client: "redis.Redis") -> None:
    wider = COLUMNS | {"volts": COLUMNS["amps"]}
    later = computation_of(BY_METER, wider)
    earlier = [
        {"k0": "a", "s0": 1, "s1": 1, "s2": 3},
        {"k0": "b", "s0": 1, "s1": 1, "s2": 4},
    ]
    write(redis_client, "c", 1, changes(METERS, 9, earlier))
    write(redis_client, "c", 2, changes(later, 9, [{"k0": "a", "s0": 2, "s1": 2, "s2": 3.5}]))
    windows = read_windows(redis_client, "c", 9, later)
    assert [row.values["total"] for row in windows] == [3.5, 4.0]


def test_the_order_of_keys_is_that_of_their_values() -> None:
    """And of their bytes: what is asked for by key is found where it was written."""
    rows = [
        {"k0": meter, "k1": floor}
        for meter in (None, "", "a", "a\0", "a\0\0", "aa", "b")
        for floor in (None, -(2**63), -1, 0, 1, 2**63 - 1)
    ]
    computation = computed(QueryText({"n": "count(*)"}, key=("meter", "floor")))
    name = schema_names(layout_of(computation))[0]
    ((_, table),) = changes(computation, 9, rows).tables
    members = members_of(table, ["k0", "k1"])
    assert members == sorted(members)
    types = [table.schema.field(column).type for column in ("k0", "k1")]
    for row, member in zip(rows, members, strict=True):
        assert place_of(member)[8:] == key_bytes([row["k0"], row["k1"]], types)
    assert name.startswith("s|")
