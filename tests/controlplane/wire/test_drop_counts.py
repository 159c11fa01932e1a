"""Counts of dropped records by event time: laws of their periods, and their bounds."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from controlplane.wire.drop_counts import (
    EVERY_RECORD,
    MAX_EDGES,
    MAX_PERIODS,
    OTHERS,
    PERIODS_S,
    DropCount,
    DropCounter,
    merged,
    periods_of,
)
from controlplane.wire.routing.drop_rules import INPUT, DropRule

RANDOM = DropRule.of(0.5)
TIMES = st.lists(st.integers(-(10**12), 10**13), max_size=60)
NEAR = st.lists(st.integers(-500_000, 500_000), max_size=60)


def counted(counter: DropCounter) -> list[DropCount]:
    return [DropCount(*row) for row in counter.rows()]


@given(st.one_of(TIMES, NEAR))
def test_each_record_is_in_one_period(times: list[int]) -> None:
    """Of times far apart, and of times before 1970."""
    periods = periods_of(np.array(times, np.int64))
    assert periods == Counter(ms // 10_000 for ms in times)


@given(NEAR)
def test_all_records_are_reported_in_few_periods(dropped: list[int]) -> None:
    counter = DropCounter()
    counter.drop(1, INPUT, RANDOM, periods_of(np.array(dropped, np.int64)))
    rows = counted(counter)
    assert len(rows) <= MAX_PERIODS
    assert len({row.seconds for row in rows}) <= 1
    assert all(row.seconds in PERIODS_S and row.start_s % row.seconds == 0 for row in rows)
    assert sum(row.dropped for row in rows) == len(dropped)
    inside = [
        sum(row.start_s <= ms / 1000 < row.start_s + row.seconds for ms in dropped) for row in rows
    ]
    assert [row.dropped for row in rows] == inside


def test_of_times_over_years_the_newest_days_are_reported() -> None:
    day_ms = 86_400_000
    counter = DropCounter()
    counter.drop(1, INPUT, RANDOM, periods_of(np.arange(1_000) * day_ms))
    rows = counted(counter)
    assert [row.start_s // 86_400 for row in rows] == list(range(1_000 - MAX_PERIODS, 1_000))


def test_what_drops_every_record_is_counted_apart() -> None:
    counter = DropCounter()
    for rule in (RANDOM, DropRule.of(1.0), DropRule(((0, 1.0),), 0, 5_000, 5_000)):
        counter.drop(1, 7, rule, {0: 1})
    windows = {(row.window_ms, row.slide_ms) for row in counted(counter)}
    assert windows == {(0, 0), EVERY_RECORD, (5_000, 5_000)}


def test_edges_that_drop_the_least_are_reported_together() -> None:
    counter = DropCounter()
    for query in range(1, MAX_EDGES + 3):
        counter.drop(5, query, RANDOM, {0: query})
    rows = {row.query: row.dropped for row in counted(counter)}
    assert len(rows) == MAX_EDGES + 1
    assert rows[OTHERS] == 1 + 2
    assert rows[MAX_EDGES + 2] == MAX_EDGES + 2
    assert 1 not in rows


@given(st.lists(st.tuples(st.integers(1, 2), st.integers(0, 2), NEAR), max_size=5))
def test_parts_of_a_batch_add_up(parts: list[tuple[int, int, list[int]]]) -> None:
    whole, taken, reports = DropCounter(), DropCounter(), []
    for stream, query, times in parts:
        periods = Counter({number % 4: n for number, n in periods_of(np.array(times)).items()})
        part = DropCounter()
        for counter in (whole, part):
            counter.drop(stream, query, RANDOM, periods)
        taken.take(part)
        reports.append(part.rows())
    assert whole.rows() == taken.rows() == merged(reports)
