"""Final windows leave Redis for the archive, and no reader notices, whenever somebody is killed."""

import math
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.background.retention import rows as retention
from controlplane.connections import redis_client
from controlplane.errors import Invalid
from controlplane.models import Cluster, Query
from controlplane.queries.spec import QuerySpec
from controlplane.results import archiving, window_retention
from controlplane.results.archive import windows as archive
from controlplane.results.archive.models import ArchivedQuery, ArchivedWindow
from controlplane.results.archive.windows import Archived, WindowRange
from controlplane.results.filters import CURSOR, WindowFilters, WindowState
from controlplane.results.pages import windows_page
from controlplane.topology import queries
from controlplane.wire import keys
from controlplane.wire.query_text import QueryText
from controlplane.wire.results import final_windows, watermarks
from controlplane.wire.results.places import start_bytes
from tests.support.windows import write_windows

# Windows of a minute, of records that may be 10 s late.
TEXT = QueryText({"n": "count(*)"}, 60.0, lateness_s=10.0, key=("stream",))
MINUTE = 60_000


class Killed(BaseException):
    """A process that ends here."""


@pytest.fixture(autouse=True)
def forgetful() -> Iterator[None]:
    """As in a process that has just begun."""
    archiving._STATES.clear()
    yield
    archiving._STATES.clear()


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


def commit(query: Query, batch: int, waiting: int = 0, clock: int = 0, **newest: float) -> None:
    """Note how far streams are, in minutes, after a batch."""
    ids = streams(query)
    times = {ids[name]: round(at * MINUTE) for name, at in newest.items()}
    slug = query.cluster.slug
    watermarks.commit(redis_client(), slug, batch, clock or batch * 1000, waiting, times)


def read(query: Query, **asked: Any) -> dict[tuple[int, str], tuple[int, str]]:
    """Return count and state of each window, by minute and stream, read page by page."""
    found: dict[tuple[int, str], tuple[int, str]] = {}
    wanted = WindowFilters(**{"limit": 3, **asked})
    while True:
        page = windows_page(query.cluster, query, wanted)
        for one in page.rows:
            place = round(one.start.timestamp() / 60), one.key["stream"]
            assert place not in found
            found[place] = one.values["n"], str(one.state)
        if not page.next:
            return found
        wanted = replace(wanted, after=CURSOR.place(page.next))


def passed(times: int = 1) -> int:
    return sum(archiving.archive_windows(timezone.now()) for _ in range(times))


@pytest.mark.both_databases
def test_a_window_is_final_when_all_streams_have_passed_it(query: Query) -> None:
    """With the lateness, and with nothing waiting; then it is in the archive."""
    write(query, 1, {(0, "s0"): 1, (0, "s1"): 2, (1, "s0"): 3})
    commit(query, 1, s0=1.5, s1=0.9)
    assert passed() == 0
    commit(query, 2, waiting=5, s1=1.5)
    assert passed() == 0
    commit(query, 3, waiting=0)
    assert passed() == 2
    expected = {(0, "s0"): (1, "final"), (0, "s1"): (2, "final"), (1, "s0"): (3, "open")}
    assert read(query) == expected
    assert read(query, newest_first=False) == expected
    assert redis_client().zcard(keys.windows_key("sf", query.pk)) == 1
    assert ArchivedWindow.objects.filter(query_id=query.pk).count() == 2
    page = windows_page(query.cluster, query, WindowFilters(state=WindowState.FINAL))
    assert {one.final_at is not None for one in page.rows} == {True}


def test_an_aggregator_has_a_batch_one_batch_later(operator: Actor, sf: Cluster) -> None:
    spec = QuerySpec("m", ("s0", "s1"), TEXT, tasks=4, key_grouping="partial_key")
    query = queries.submit(operator, sf, spec)
    write(query, 1, {(0, "s0"): 1})
    commit(query, 1, s0=2, s1=2)
    assert passed() == 0
    commit(query, 2)
    assert passed() == 1


def test_an_idle_stream_holds_no_window_open(query: Query) -> None:
    """By the committed clock; what comes of it later does not change what is final."""
    write(query, 1, {(0, "s0"): 1, (0, "s1"): 2})
    commit(query, 1, clock=2_000_000_000_000, s0=0.5, s1=0.1)
    commit(query, 2, clock=2_000_000_200_000, s0=2)
    assert passed() == 0
    commit(query, 3, clock=2_000_000_301_000, s0=3)
    assert passed() == 2
    write(query, 4, {(0, "s1"): 7})
    assert read(query) == {(0, "s0"): (1, "final"), (0, "s1"): (2, "final")}


@pytest.mark.both_databases
@pytest.mark.parametrize("step", ["freeze", "insert", "remove", "removed"])
def test_a_kill_between_two_steps_loses_and_doubles_nothing(
    query: Query, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    written = {(at, name): at + 1 for at in range(20) for name in ("s0", "s1")}
    write(query, 1, written)
    commit(query, 1, s0=15.5, s1=15.5)
    monkeypatch.setattr(archiving, "_OLDEST", replace(archiving._OLDEST, limit=7))
    of, name = {
        "freeze": (final_windows, "freeze"),
        "insert": (archive, "insert_all"),
        "remove": (final_windows, "remove_all"),
        "removed": (final_windows, "remove_all"),
    }[step]
    genuine, calls = getattr(of, name), []

    def killed(*given: Any) -> Any:
        calls.append(given)
        if len(calls) == 2 or step == "freeze":
            if step != "remove":
                genuine(*given)
            raise Killed
        return genuine(*given)

    monkeypatch.setattr(of, name, killed)
    with pytest.raises(Killed):
        passed()
    monkeypatch.setattr(of, name, genuine)
    counts = {place: n for place, (n, _) in read(query).items()}
    assert counts == written
    archiving._STATES.clear()
    passed(2)
    expected = {place: (n, "final" if place[0] < 15 else "open") for place, n in written.items()}
    assert read(query) == read(query, newest_first=False) == expected
    assert redis_client().zcard(keys.windows_key("sf", query.pk)) == 10
    assert ArchivedQuery.objects.get(pk=query.pk).windows == 30


@pytest.mark.both_databases
def test_what_is_archived_already_is_counted_once(query: Query) -> None:
    """Of two queries together, one of which a pass that was killed had written in part."""
    rows = [Archived(start_bytes(at * MINUTE), [], [at], 1, None) for at in range(5)]
    archive.insert_all(query.cluster_id, {query.pk: rows[:2]})
    both = {query.pk: rows, query.pk + 1: rows[:3]}
    assert archive.insert_all(query.cluster_id, both) == 6
    assert {one.pk: one.windows for one in ArchivedQuery.objects.all()} == {
        query.pk: 5, query.pk + 1: 3,
    }  # fmt: skip
    assert archive.insert_all(query.cluster_id, both) == 0


def test_a_pass_takes_its_share_of_time_but_for_windows_that_wait(
    operator: Actor, sf: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who waits longest is first; who waits too long is not put off again."""
    monkeypatch.setattr(archiving, "SHARE_S", 0.0)
    monkeypatch.setattr(archiving, "TOGETHER", 1)
    several = [queries.submit(operator, sf, QuerySpec(f"q{at}", ("s0",), TEXT)) for at in range(4)]
    for one in several:
        write(one, 1, {(0, "s0"): 1})
    commit(several[0], 2, s0=3)
    assert [passed(), passed()] == [1, 1]
    assert ArchivedWindow.objects.count() == 2
    monkeypatch.setattr(archiving, "WAIT_S", 0.0)
    assert passed() == 2
    assert set(ArchivedWindow.objects.values_list("query_id", flat=True)) == {
        one.pk for one in several
    }


def test_only_one_process_archives_at_a_time(query: Query) -> None:
    write(query, 1, {(0, "s0"): 1})
    commit(query, 1, s0=9, s1=9)
    redis_client().set("weir:archiver", "another", px=5_000)
    assert passed() == 0
    redis_client().delete("weir:archiver")
    assert passed() == 1
    assert not redis_client().exists("weir:archiver")


@pytest.mark.both_databases
def test_windows_are_found_by_time_key_and_state(query: Query) -> None:
    """Those in Redis and those in the archive, in either order, over pages of every length."""
    written = {(at, name): at + 9 for at in range(-5, 12) for name in ("s0", "s1")}
    write(query, 1, written)
    commit(query, 1, s0=4.5, s1=4.5)
    passed()
    ids = streams(query)

    def order(place: tuple[int, str]) -> tuple[int, int]:
        return place[0], ids[place[1]]

    for limit in (1, 2, 5, 100):
        for newest_first in (False, True):
            asked = {"limit": limit, "newest_first": newest_first}
            found = read(query, **asked)
            assert {place: n for place, (n, _) in found.items()} == written
            assert list(found) == sorted(found, key=order, reverse=newest_first)
            some = read(query, first_ms=2 * MINUTE, last_ms=6 * MINUTE, key="s1", **asked)
            states = {at: "final" if at < 4 else "open" for at in range(2, 7)}
            assert some == {(at, "s1"): (at + 9, state) for at, state in states.items()}
            final = read(query, state=WindowState.FINAL, **asked)
            assert list(final) == [place for place in found if place[0] < 4]
            open_ = read(query, state=WindowState.OPEN, **asked)
            assert list(open_) == [place for place in found if place[0] >= 4]
    assert read(query, key="s9") == {}
    with pytest.raises(Invalid) as refused:
        read(query, key='{"car": 7}')
    assert list(refused.value.fields) == ["key"]


def test_windows_of_a_query_that_ended_stay_for_its_retention(query: Query) -> None:
    """Those that were open are incomplete; then everything goes, with the query."""
    write(query, 1, {(at, "s0"): 1 for at in range(4)})
    commit(query, 1, clock=1_000, s0=2.5, s1=2.5)
    now = timezone.now()
    Query.objects.filter(pk=query.pk).update(state="ended", ended_at=now, retention_s=7 * 3600)
    assert passed() == 0
    commit(query, 2, clock=round(now.timestamp() * 1000) + 31_000)
    assert passed(2) == 4
    states = {at: state for (at, _), (_, state) in read(query).items()}
    assert states == {0: "final", 1: "final", 2: "incomplete", 3: "incomplete"}
    assert read(query, state=WindowState.INCOMPLETE).keys() == {(2, "s0"), (3, "s0")}
    write(query, 2, {(3, "s0"): 9})
    assert not redis_client().exists(keys.windows_key("sf", query.pk))
    assert final_windows.stored_queries(redis_client(), "sf") == []
    later = now + timedelta(hours=6.5)
    assert (retention.prune_queries(later), window_retention.prune_windows(later)) == (0, 0)
    later = now + timedelta(hours=7.5)
    assert (retention.prune_queries(later), window_retention.prune_windows(later)) == (1, 4)
    assert not ArchivedQuery.objects.exists()


def test_windows_that_never_become_final_are_bounded(query: Query) -> None:
    """By event time and by number, as others are; the newest stay."""
    Query.objects.filter(pk=query.pk).update(retention_s=600, retention_windows=8)
    write(query, 1, {(at, "s0"): 1 for at in range(20)})
    commit(query, 1, s0=20)
    # Nobody has heard of s1, which is not idle yet.
    assert passed(2) == 12
    found = read(query)
    assert [at for (at, _), (_, state) in found.items() if state == "open"] == list(
        range(19, 11, -1)
    )
    assert {state for _, state in found.values()} == {"open", "incomplete"}


def test_what_redis_has_of_unknown_queries_is_dropped(query: Query) -> None:
    write(query, 1, {(0, "s0"): 1})
    pk = query.pk
    query.delete()
    passed()
    assert not redis_client().exists(keys.windows_key("sf", pk), keys.rows_key("sf", pk))


@pytest.mark.both_databases
def test_retention_is_by_event_time_and_by_number(query: Query) -> None:
    rows = [Archived(start_bytes(at * MINUTE) + b"\x01k", ["k"], [at], 1, 5) for at in range(500)]
    assert archive.insert_all(query.cluster_id, {query.pk: rows}) == 500
    assert archive.insert_all(query.cluster_id, {query.pk: rows[:7]}) == 0
    Query.objects.filter(pk=query.pk).update(retention_s=400 * 60, retention_windows=450)
    now = timezone.now()
    assert window_retention.prune_windows(now) == 99
    assert window_retention.prune_windows(now) == 0
    Query.objects.filter(pk=query.pk).update(retention_windows=100)
    assert window_retention.prune_windows(now) == 301
    left = archive.read(WindowRange(query.pk, newest_first=False))
    assert [one.start_ms // MINUTE for one in left] == list(range(400, 500))
    assert ArchivedQuery.objects.get(pk=query.pk).windows == 100


@pytest.mark.both_databases
def test_the_archive_keeps_every_kind_of_value(query: Query) -> None:
    values = [1, -(2**100), 2.5, math.inf, "äb", None, True,
              Decimal("1.250000000"), date(2026, 1, 31), datetime(2026, 1, 31, tzinfo=UTC),
              [["a", 3]], b"\x00\xff", "\ud800"]  # fmt: skip
    archive.insert_all(1, {query.pk: [Archived(start_bytes(0), [], values, 1, None)]})
    (found,) = archive.read(WindowRange(query.pk))
    assert found.values == values
    assert found.final_at_ms is None
