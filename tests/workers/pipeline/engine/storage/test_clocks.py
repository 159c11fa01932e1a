"""Watermarks and clocks of streams hold to the millisecond."""

import pyarrow as pa
import pytest

from workers.pipeline.engine.evaluation.records import NO_WATERMARK
from workers.pipeline.engine.storage.idle_streams import CLOCK, LogTimes, StreamClock
from workers.pipeline.engine.storage.watermarks import (
    WATERMARKS,
    advance_watermarks,
    newest_panes,
    read_watermarks,
)
from workers.pipeline.engine.store import MemoryStore


def test_watermarks_only_grow() -> None:
    store = MemoryStore()
    assert read_watermarks(store) == {}
    assert advance_watermarks(store, {1: 5, 2: -7}) == {1: 5, 2: -7}
    assert advance_watermarks(store, {1: 4, 2: -6}) == {1: 5, 2: -6}
    assert read_watermarks(store) == {1: 5, 2: -6}
    before = store[WATERMARKS]
    del store[WATERMARKS]
    store[WATERMARKS] = before
    assert advance_watermarks(store, {1: 5, 2: -8}) == {1: 5, 2: -6}
    assert store[WATERMARKS] is before, "nothing is written if nothing grows"


def test_the_newest_pane_of_each_stream() -> None:
    rows = pa.table({"stream": [1, 2, 1, 2], "pane": [5, -3, 9, -8]})
    assert newest_panes(rows) == {1: 9, 2: -3}
    assert newest_panes(rows.slice(0, 0)) == {}


def test_a_clock_advances_with_the_log() -> None:
    store = MemoryStore()
    clock = StreamClock.read(store, LogTimes(100, {1: 90}, {1: 10}))
    assert (clock.now_ms, clock.since_ms, clock.last_append_ms) == (100, 100, {1: 90})
    clock.save(store, {})
    again = StreamClock.read(store, LogTimes(95, {1: 80, 2: 94}, {}))
    assert (again.now_ms, again.since_ms) == (100, 100)
    assert again.last_append_ms == {1: 90, 2: 94}
    later = StreamClock.read(store, LogTimes(130, {1: 120}, {}))
    assert (later.now_ms, later.since_ms, later.last_append_ms) == (130, 100, {1: 120})
    stored = StreamClock.read(store)
    assert (stored.now_ms, stored.last_append_ms, stored.idle_ms) == (100, {1: 90}, {})


def test_an_unchanged_clock_is_not_written() -> None:
    store = MemoryStore()
    clock = StreamClock.read(store, LogTimes(100))
    clock.save(store, {})
    row = store[CLOCK]
    StreamClock.read(store).save(store, {})
    assert store[CLOCK] is row


@pytest.mark.parametrize(
    ("now_ms", "begun_ms", "idle"),
    [(110, 0, False), (111, 0, True), (125, 115, False), (126, 115, True), (111, 90, True)],
)
def test_a_stream_is_idle_after_its_time(now_ms: int, begun_ms: int, idle: bool) -> None:
    clock = StreamClock(now_ms, 50, {1: 100}, idle_ms={1: 10, 2: 60})
    assert clock.is_idle(1, begun_ms) is idle
    assert not clock.is_idle(3), "it never is without a time"
    # Without a record, the time counts from the first that the node has seen of the log.
    assert clock.is_idle(2) is (now_ms > 110)


def test_idle_streams_hold_no_window_open() -> None:
    clock = StreamClock(200, 50, {1: 195, 2: 100}, idle_ms={1: 10, 2: 10})
    watermarks = {1: 70, 2: 30}
    assert clock.slowest(watermarks, (1, 2)) == 70
    assert clock.slowest(watermarks, (1, 2), begun_ms=195) == 30
    assert clock.slowest(watermarks, (1, 9)) == NO_WATERMARK
    assert clock.slowest(watermarks, ()) == NO_WATERMARK
    clock.now_ms = 300
    assert clock.slowest(watermarks, (1, 2)) == 30, "all are idle"


def test_windows_stay_closed() -> None:
    clock = StreamClock(200, 50)
    clock.close({7: (1, 2)}, {1: 70, 2: 30})
    assert (clock.closed_until, clock.started_ms) == ({7: 30}, {7: 200})
    clock.now_ms = 300
    clock.close({7: (1, 2)}, {1: 70, 2: 20})
    clock.close({8: (1, 9)}, {1: 70})
    assert (clock.closed_until, clock.started_ms) == ({7: 30}, {7: 200, 8: 300})
    store = MemoryStore()
    clock.save(store, {8: (1, 9)})
    assert StreamClock.read(store).started_ms == {8: 300}
    assert StreamClock.read(store).closed_until == {}


def test_a_clock_that_has_not_started_starts_no_query() -> None:
    clock = StreamClock()
    clock.close({7: (1,)}, {1: 70})
    assert (clock.started_ms, clock.closed_until) == ({}, {7: 70})


@pytest.mark.parametrize(
    ("here", "there", "closed", "started"),
    [
        ((30, 200), (40, 150), 40, 150),
        ((30, 200), (20, 250), 30, 200),
        ((None, None), (5, 6), 5, 6),
    ],
)
def test_the_clock_of_a_query_travels_with_its_task(
    here: tuple[int | None, int | None],
    there: tuple[int, int],
    closed: int,
    started: int,
) -> None:
    source = StreamClock(closed_until={7: there[0]}, started_ms={7: there[1]})
    clock = StreamClock()
    if here[0] is not None and here[1] is not None:
        clock = StreamClock(closed_until={7: here[0]}, started_ms={7: here[1]})
    data = source.export_query(7)
    assert data is not None
    clock.import_query(7, data)
    assert (clock.closed_until, clock.started_ms) == ({7: closed}, {7: started})
    assert source.export_query(8) is None
    assert StreamClock(started_ms={7: 5}).export_query(7) == b"[null, 5]"
    assert StreamClock(closed_until={7: 5}).export_query(7) == b"[5, null]"
