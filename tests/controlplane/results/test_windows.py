"""Windows become final, are read page by page, and leave by their query's retention."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.connections import redis_client
from controlplane.errors import Invalid
from controlplane.models import Cluster, Query, Stream
from controlplane.queries.spec import QuerySpec
from controlplane.results import retention
from controlplane.results.database import is_postgres, results_cursor
from controlplane.results.filters import CURSOR, WindowFilters, WindowState
from controlplane.results.finality import update_finality
from controlplane.results.pages import windows_page
from controlplane.topology import queries
from controlplane.wire.query_text import QueryText
from controlplane.wire.results import watermarks
from controlplane.wire.results.tables import DAY_MS, partitions
from controlplane.wire.sources.files import FileSource
from tests.support.windows import write_windows

# Windows of a minute, of records that may be 10 s late.
TEXT = QueryText({"n": "count(*)"}, 60.0, lateness_s=10.0, key=("stream",))
MINUTE = 60_000
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis_url")]


@pytest.fixture
def query(operator: Actor, sf: Cluster) -> Query:
    return queries.submit(operator, sf, QuerySpec("q", ("s0", "s1"), TEXT))


def streams(query: Query) -> dict[str, int]:
    return {stream.name: stream.pk for stream in query.streams.all()}


def write(query: Query, batch: int, counts: dict[tuple[int, str], int]) -> None:
    """Write windows by minute and stream."""
    ids = streams(query)
    rows = [{"pane": at * MINUTE, "stream": ids[s], "k0": ids[s], "s0": n}
            for (at, s), n in counts.items()]  # fmt: skip
    write_windows(query, batch, rows)


def commit(query: Query, batch: int, waiting: int = 0, clock: int = 0, **newest: float) -> int:
    """Note how far streams are, in minutes, after a batch; return how many queries go on."""
    ids = streams(query)
    times = {ids[name]: round(at * MINUTE) for name, at in newest.items()}
    slug = query.cluster.slug
    watermarks.commit(redis_client(), slug, batch, clock or batch * 1000, waiting, times)
    return update_finality(timezone.now())


def read(query: Query, **asked: Any) -> dict[tuple[int, str], tuple[int, str]]:
    """Return count and state of each window, by minute and stream, read page by page."""
    windows: dict[tuple[int, str], tuple[int, str]] = {}
    wanted = WindowFilters(**{"limit": 3, **asked})
    while True:
        page = windows_page(query.cluster, query, wanted)
        for one in page.rows:
            place = round(one.start.timestamp() / 60), one.key["stream"]
            assert place not in windows
            windows[place] = one.values["n"], str(one.state)
        if not page.next:
            return windows
        wanted = replace(wanted, after=CURSOR.place(page.next))


@pytest.mark.both_databases
def test_windows_become_final_when_all_streams_have_passed_them(query: Query) -> None:
    """By their end and the lateness; records that wait keep all windows open."""
    write(query, 1, {(0, "s0"): 1, (0, "s1"): 2, (1, "s0"): 3})
    assert commit(query, 1, s0=2.5) == 0, "the other stream has nothing yet"
    commit(query, 2, s0=2.5, s1=1.1)
    assert {state for _, state in read(query).values()} == {"open"}, "a record may be 10 s late"
    assert commit(query, 3, waiting=1, s1=9) == 0
    assert {state for _, state in read(query).values()} == {"open"}
    assert commit(query, 4, s1=9) == 1
    assert read(query) == {
        (1, "s0"): (3, "final"), (0, "s1"): (2, "final"), (0, "s0"): (1, "final")
    }  # fmt: skip


def test_final_windows_stay_final_after_an_idle_stream(query: Query) -> None:
    """Its later records correct them, and keep the others open."""
    write(query, 1, {(0, "s0"): 1, (5, "s0"): 1})
    now_ms = round(timezone.now().timestamp() * 1000)
    commit(query, 1, clock=now_ms, s0=3, s1=0.5)
    assert commit(query, 2, clock=now_ms + 10**6, s0=3) == 1
    commit(query, 3, clock=now_ms + 10**6, s1=0.6)
    write(query, 4, {(0, "s0"): 9, (5, "s0"): 9})
    assert read(query) == {(5, "s0"): (9, "open"), (0, "s0"): (9, "final")}


@pytest.mark.both_databases
def test_pages_have_every_window_once_in_both_orders(query: Query) -> None:
    counts = {(at, name): at * 2 + int(name == "s1") for at in range(5) for name in ("s0", "s1")}
    write(query, 1, counts)
    commit(query, 2, s0=3.2, s1=3.2)
    every = {place: (n, "final" if place[0] < 3 else "open") for place, n in counts.items()}
    for newest_first in (True, False):
        windows = read(query, newest_first=newest_first)
        assert windows == every
        starts = [start for start, _ in windows]
        assert starts == sorted(starts, reverse=newest_first)
    assert read(query, state=WindowState.OPEN) == {p: v for p, v in every.items() if p[0] >= 3}
    assert read(query, state=WindowState.FINAL) == {p: v for p, v in every.items() if p[0] < 3}
    assert read(query, state=WindowState.INCOMPLETE) == {}
    assert read(query, key="s1") == {p: v for p, v in every.items() if p[1] == "s1"}
    some = read(query, first_ms=MINUTE, last_ms=3 * MINUTE - 1, key='["s0"]', newest_first=False)
    assert list(some) == [(1, "s0"), (2, "s0")]
    with pytest.raises(Invalid):
        read(query, key="[1, 2]")


def test_windows_of_an_ended_query_are_incomplete_once_nothing_writes_to_it(query: Query) -> None:
    write(query, 1, {(0, "s0"): 1, (5, "s0"): 2})
    commit(query, 1, s0=2, s1=2)
    Query.objects.filter(pk=query.pk).update(state="ended", ended_at=timezone.now())
    commit(query, 2, s0=2)
    assert read(query, state=WindowState.OPEN) == {(5, "s0"): (2, "open")}
    ended = timezone.now() - timedelta(hours=1)
    Query.objects.filter(pk=query.pk).update(ended_at=ended)
    update_finality(timezone.now())
    assert read(query) == {(5, "s0"): (2, "incomplete"), (0, "s0"): (1, "final")}
    write(query, 3, {(5, "s0"): 7})
    assert read(query, state=WindowState.INCOMPLETE) == {(5, "s0"): (2, "incomplete")}


@pytest.mark.both_databases
def test_windows_leave_by_age_by_number_and_after_the_end(query: Query) -> None:
    minutes = range(0, 10 * 1440, 1440)
    write(query, 1, {(at, "s0"): 1 for at in minutes})
    retention.prune_windows(timezone.now())
    assert len(read(query)) == 8, "seven days behind the newest one"
    Query.objects.filter(pk=query.pk).update(retention_windows=3)
    retention.prune_windows(timezone.now())
    assert sorted(read(query)) == [(at, "s0") for at in minutes[-3:]]
    if is_postgres():
        with results_cursor() as cursor:
            assert min(partitions(cursor)) >= minutes[-8] * MINUTE // DAY_MS
    ended = timezone.now() - timedelta(days=8)
    Query.objects.filter(pk=query.pk).update(state="ended", ended_at=ended)
    retention.prune_windows(timezone.now())
    assert read(query) == {}
    with results_cursor() as cursor:
        cursor.execute("SELECT count(*) FROM results_query")
        assert cursor.fetchone()[0] == 0


def test_a_pass_of_retention_is_bounded(query: Query, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the windows of a deleted query leave, too."""
    monkeypatch.setattr(retention, "MOST", 4)
    monkeypatch.setattr(retention, "CHUNK", 3)
    write(query, 1, {(at, "s0"): 1 for at in range(10)})
    Query.objects.filter(pk=query.pk).delete()
    assert [retention.prune_windows(timezone.now()) for _ in range(4)] == [4, 4, 2, 0]


def test_indexed_files_leave_with_the_source_of_their_stream(
    sf: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "CHUNK", 2)
    reading, other, *_ = sf.streams.all()
    Stream.objects.filter(pk=reading.pk).update(source=FileSource("file:///in").to_json())
    streams = [(sf.slug, reading.pk), (sf.slug, other.pk), (sf.slug, 0), ("gone", reading.pk)]
    with results_cursor() as cursor:
        for stream in streams:
            for number in range(5):
                row = [*stream, "i", number, 0, number, 1, "f", 1, 1, "[]", "[]", ""]
                cursor.execute(f"INSERT INTO results_file VALUES ({', '.join(['%s'] * 13)})", row)
        assert [retention.prune_files() for _ in range(2)] == [15, 0]
        cursor.execute("SELECT DISTINCT cluster, stream FROM results_file")
        assert cursor.fetchall() == [streams[0]]
