"""Windows of which drop rules leave too little for an estimate."""

import pytest
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.models import Cluster, EdgePeriod, Query
from controlplane.results.sampled import dropped_starts
from controlplane.wire.drop_counts import EVERY_RECORD, OTHERS
from controlplane.wire.query import Window
from controlplane.wire.routing.drop_rules import INPUT
from tests.support.cluster import placed

pytestmark = pytest.mark.django_db
WINDOW = Window(60_000, 20_000)


@pytest.fixture
def query(operator: Actor, sf: Cluster) -> Query:
    """A query of two streams."""
    return placed(operator, sf, {"q": ["s0", "s1"]})[0]


def drop(query: Query, edge: int | None, start_s: int, windows: tuple[int, int] = (0, 0)) -> None:
    """Count drops of ten seconds on an edge, None: of the query."""
    EdgePeriod.objects.create(
        stream=query.streams.get(name="s1"), query=query.pk if edge is None else edge,
        window_ms=windows[0], slide_ms=windows[1], start_s=start_s, seconds=10, dropped=5,
        counted_at=timezone.now(),
    )  # fmt: skip


@pytest.mark.parametrize("edge", [None, INPUT])
def test_samples_of_both_edges(query: Query, edge: int | None) -> None:
    drop(query, edge, 60)
    starts = dropped_starts(query, WINDOW, [0, 20, 40, 60, 80])
    assert (sorted(starts.sampled), sorted(starts.unknown)) == ([20, 40, 60], [])


@pytest.mark.parametrize(
    ("edge", "windows"),
    [(OTHERS, (0, 0)), (INPUT, (5_000, 5_000)), (None, EVERY_RECORD), (OTHERS, (5_000, 5_000))],
)
def test_what_no_record_stands_for(
    query: Query, edge: int | None, windows: tuple[int, int]
) -> None:
    drop(query, edge, 60, windows)
    starts = dropped_starts(query, WINDOW, [0, 20, 80])
    assert (sorted(starts.sampled), sorted(starts.unknown)) == ([], [20])


def test_dropped_windows_of_the_same_length_are_no_drops(query: Query) -> None:
    drop(query, None, 60, (WINDOW.size_ms, WINDOW.slide_ms))
    assert not any(dropped_starts(query, WINDOW, [0, 20, 40]))


def test_without_windows_there_are_no_drops(query: Query) -> None:
    assert not any(dropped_starts(query, WINDOW, []))
