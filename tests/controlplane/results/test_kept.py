"""The fraction of its records that a window keeps, from counts by event time."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.results.edge_periods import Counts, Ranges
from controlplane.results.kept import UNKNOWN, Kept, fractions
from controlplane.wire.drop_counts import OTHERS
from controlplane.wire.query import Window
from controlplane.wire.routing.drop_rules import INPUT

STREAM, OTHER, QUERY = 1, 2, 11
WINDOW = Window(60_000, 20_000)
ALWAYS = Ranges([(-math.inf, math.inf)], math.inf)


def arrived(start_s: int, records: int, dropped: int = 0, stream: int = STREAM) -> Counts:
    return Counts(stream, INPUT, 0, 0, start_s, start_s + 10, records, dropped)


def dropped(start_s: int, records: int, query: int = QUERY, window_ms: int = 0) -> Counts:
    return Counts(STREAM, query, window_ms, window_ms, start_s, start_s + 10, 0, records)


def about(fraction: float) -> Any:
    """Return what equals a fraction of a random sample but for rounding."""
    return (pytest.approx(fraction), True)


def kept(counts: list[Counts], start: float = 0, ranges: Ranges = ALWAYS) -> Kept | None:
    streams = dict.fromkeys({count.stream for count in counts}, ranges)
    return fractions(counts, streams, QUERY, WINDOW, [start]).get(start)


def test_both_edges_count() -> None:
    counts = [arrived(0, 100, 40), arrived(30, 100), dropped(0, 30), dropped(30, 10, query=12)]
    assert kept(counts) == about(1 - 70 / 200)


def test_windows_without_drops_are_absent() -> None:
    counts = [arrived(0, 100, 40), arrived(60, 100), arrived(120, 100)]
    assert fractions(counts, {STREAM: ALWAYS}, QUERY, WINDOW, [0, 20, 60]) == {0: about(0.6)}


def test_all_streams_of_the_query_count() -> None:
    assert kept([arrived(0, 100, 50), arrived(0, 300, stream=OTHER)]) == Kept(0.875)


@given(st.lists(st.tuples(st.integers(0, 11), st.integers(1, 99), st.integers(0, 99)), min_size=1))
def test_sliding_windows_have_the_counts_of_their_periods(
    rows: list[tuple[int, int, int]],
) -> None:
    counts = [arrived(10 * number, n + m, m) for number, n, m in rows]
    for start in range(0, 60, 20):
        own = [count for count in counts if start <= count.start_s < start + 60]
        lost = sum(count.dropped for count in own)
        expected = 1 - lost / sum(count.arrived for count in own) if lost else None
        result = kept(counts, start)
        assert (None if result is None else result.fraction) == (
            None if expected is None else pytest.approx(expected)
        )


def test_long_periods_are_spread_over_the_windows() -> None:
    hour = Counts(STREAM, INPUT, 0, 0, 0, 3_600, 36_000, 0)
    lost = Counts(STREAM, QUERY, 0, 0, 0, 600, 0, 3_000)
    assert kept([hour, lost], 120) == about(0.5)
    assert kept([hour, lost], 1_200) is None


def test_time_before_the_first_count_was_complete() -> None:
    """Two thirds of the window at the same rate, without drops."""
    ranges = Ranges([(40, math.inf)], 60)
    assert kept([arrived(40, 100, 50), arrived(50, 100, 50)], 0, ranges) == about(1 - 100 / 600)


def test_time_after_the_last_count_was_complete() -> None:
    ranges = Ranges([(0, 20)], 20)
    counts = [arrived(0, 100, 50), arrived(10, 100, 50)]
    assert kept(counts, 0, ranges) == about(1 - 100 / 600)


def test_an_open_window_has_the_fraction_of_what_arrived() -> None:
    ranges = Ranges([(0, math.inf)], 20)
    counts = [arrived(0, 100, 50), arrived(10, 100, 50)]
    assert kept(counts, 0, ranges) == about(0.5)


def test_counted_time_without_records_has_no_weight() -> None:
    assert kept([arrived(10, 100, 50)]) == about(0.5)


def test_dropped_windows_of_the_same_length_are_exact() -> None:
    rule = Counts(STREAM, QUERY, 60_000, 20_000, 0, 10, 0, 100)
    assert kept([arrived(0, 100), rule]) is None


def test_windows_of_another_length_are_no_random_sample() -> None:
    assert kept([arrived(0, 100), dropped(0, 25, INPUT, 5_000)]) == Kept(0.75, is_random=False)


def test_edges_without_counts_of_their_own_are_unknown() -> None:
    assert kept([arrived(0, 100), dropped(0, 25, OTHERS)]) == UNKNOWN
    assert kept([arrived(0, 100, 10), dropped(600, 25, OTHERS)]) == Kept(0.9)
