"""Archiving: final windows are moved from Redis to the archive.

A pass processes the queries that have windows in Redis. Windows whose end the streams' watermarks
have passed are frozen, finalized, written to the archive, and then removed from Redis. Every step
can be repeated: the next pass completes a pass that was killed. A reader reads Redis before the
archive, so it always finds a window in one of them.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import takewhile
from typing import Final

import redis
from django.db import OperationalError

from controlplane.connections import redis_client
from controlplane.models import Cluster, Query
from controlplane.results.archive import windows as archive
from controlplane.results.archive.values import Raised
from controlplane.results.archive.windows import Archived
from controlplane.results.finality import WindowTiming, window_timings
from controlplane.results.window_retention import (
    computation_of,
    drop_all,
    drop_until,
    readable,
    retentions,
)
from controlplane.wire.foreign.entries import EntryLocation, skip
from controlplane.wire.results import final_windows, watermarks
from controlplane.wire.results.assembly import StoredWindow
from controlplane.wire.results.feed import followed, note_final
from controlplane.wire.results.places import start_of
from controlplane.wire.results.read import Range, WindowsPage, read_pages
from controlplane.wire.results.watermarks import Watermarks

# The time of a pass (s), however much there is to do; the next one continues.
PASS_S: Final = 1.5
# A pass spends more than this (s) on a cluster only for windows that have waited for so long (s): a
# query costs the same for one window and for a dozen.
SHARE_S: Final = 0.2
WAIT_S: Final = 10.0
# Windows of a query that are archived together, and queries whose windows are.
PAGE: Final = 500
TOGETHER: Final = 50
# The time of users' aggregates for a page (s); other windows wait for the next pass.
PAGE_S: Final = 0.5
# Ended queries that a pass archives, and live ones whose windows it counts.
ENDED: Final = 500
COUNTED: Final = 200
# Batches that were planned before a query ended may write to it for so long, by their clock; by
# the archiver's clock if there is no batch.
ENDED_MS: Final = 30_000
ABANDONED_MS: Final = 600_000
_LOCK: Final = "weir:archiver"
_LOCK_MS: Final = 60_000
_RELEASE: Final = (
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"
)


@dataclass
class ArchiverState:
    """State of the archiver per cluster, kept in its process between passes.

    `times` by query; `done`: up to which start windows were frozen; `since`: since when windows
    wait to be frozen; `slow`: when the aggregates of queries last had too little time for a page;
    `counted`: the last query whose windows were counted.
    """

    times: dict[int, WindowTiming] = field(default_factory=dict)
    done: dict[int, int] = field(default_factory=dict)
    since: dict[int, float] = field(default_factory=dict)
    slow: dict[int, float] = field(default_factory=dict)
    counted: int = 0


@dataclass(frozen=True, slots=True)
class Pass:
    """A pass over one cluster; `followed`: the queries with followers of their change feed."""

    client: "redis.Redis"
    cluster: Cluster
    known: ArchiverState
    now_ms: int
    deadline: float
    followed: frozenset[int] = frozenset()
    started_at: float = field(default_factory=time.monotonic)

    @property
    def is_over(self) -> bool:
        """Return True if the deadline of the pass has passed."""
        return time.monotonic() > self.deadline

    def has_time_for(self, since: float) -> bool:
        """Return True if there is time for windows that have waited since then."""
        now = time.monotonic()
        return now < min(self.deadline, self.started_at + SHARE_S) or (
            now < self.deadline and now > since + WAIT_S
        )


_STATES: dict[int, ArchiverState] = {}
_OLDEST: Final = Range(limit=PAGE, newest_first=False)


def archive_windows(now: datetime) -> int:
    """Archive the final windows of every cluster; return how many were removed from Redis.

    An unreadable value of a cluster is counted, and does not affect the others.
    Does nothing while another process holds the lock.
    """
    client, token = redis_client(), f"{time.time_ns()}"
    if not client.set(_LOCK, token, nx=True, px=_LOCK_MS):
        return 0
    try:
        clusters = sorted(Cluster.objects.order_by("pk"), key=_slow_at)
        now_ms = round(now.timestamp() * 1000)
        deadline = time.monotonic() + PASS_S
        moved = 0
        for cluster in clusters:
            state = _STATES.setdefault(cluster.pk, ArchiverState())
            try:
                followers = frozenset(followed(client, cluster.slug, now_ms))
                moved += archive_cluster(Pass(client, cluster, state, now_ms, deadline, followers))
            except (redis.ConnectionError, redis.TimeoutError, OperationalError):
                raise
            except Exception as error:  # noqa: BLE001 - the others are archived
                skip(client, cluster.slug, EntryLocation.RESULTS, error)
        return moved
    finally:
        client.register_script(_RELEASE)(keys=[_LOCK], args=[token])


def _slow_at(cluster: Cluster) -> float:
    """Return when slow queries were last archived, so that clusters without them are first."""
    known = _STATES.get(cluster.pk)
    return max(known.slow.values(), default=0.0) if known else 0.0


def archive_cluster(sweep: Pass) -> int:
    """Archive the final windows of a cluster until the deadline; return how many."""
    slug = sweep.cluster.slug
    # The watermarks first: what is complete for them is in Redis by now.
    watermarks_now = watermarks.read(sweep.client, slug)
    present = final_windows.stored_queries(sweep.client, slug)
    live = _live(sweep, present)
    moved = _archive_live(sweep, watermarks_now, live)
    moved += _archive_ended(sweep, watermarks_now, sorted(set(present) - set(live)))
    return moved + _cut_long(sweep, live)


def _live(sweep: Pass, stored: Sequence[int]) -> list[int]:
    """Return the queries that have not ended, and update their window timings."""
    states = (Query.State.PENDING, Query.State.RUNNING, Query.State.ENDING)
    queries = Query.objects.filter(cluster=sweep.cluster, state__in=states).values_list(
        "pk", flat=True
    )
    live = sorted(set(stored).intersection(queries))
    known = sweep.known
    known.times |= window_timings(sweep.cluster.pk, set(live) - known.times.keys())
    for ended in known.times.keys() - set(live):
        del known.times[ended]
        for of_query in (known.done, known.since, known.slow):
            of_query.pop(ended, None)
    return [query for query in live if query in known.times]


def _archive_live(sweep: Pass, watermarks_now: Watermarks, live: Sequence[int]) -> int:
    """Archive the windows that have become final, first those of followed queries."""
    due, known = _due(sweep, watermarks_now, live), sweep.known
    # Slow ones are last, and are archived one after the other.
    queries = sorted(
        due, key=lambda pk: (known.slow.get(pk, 0.0), pk not in sweep.followed, known.since[pk])
    )
    moved = 0
    for start in range(0, len(queries), TOGETHER):
        some = queries[start : start + TOGETHER]
        if start and not sweep.has_time_for(min(known.since[query] for query in some)):
            break
        moved += _freeze_and_move(sweep, {query: due[query] for query in some})
    return moved


def _due(sweep: Pass, watermarks_now: Watermarks, live: Sequence[int]) -> dict[int, int]:
    """Return the time until which windows are final, for queries with windows to freeze."""
    due: dict[int, int] = {}
    known, now = sweep.known, time.monotonic()
    for query in live:
        times = known.times[query]
        until = times.final_until(watermarks_now)
        # Between two starts nothing becomes final.
        if until is not None and until // times.slide_ms != known.done.get(query):
            due[query] = until
            known.since.setdefault(query, now)
    return due


def _freeze_and_move(sweep: Pass, due: Mapping[int, int]) -> int:
    frozen = final_windows.freeze(sweep.client, sweep.cluster.slug, due, sweep.now_ms)
    present = [query for query, outcome in frozen.items() if outcome]
    moved, done = move_windows(sweep, present)
    for query in done | (set(frozen) - set(present)):
        if frozen[query] != final_windows.BEHIND:
            sweep.known.done[query] = due[query] // sweep.known.times[query].slide_ms
            sweep.known.since.pop(query, None)
    return moved


def _archive_ended(sweep: Pass, watermarks_now: Watermarks, over: Sequence[int]) -> int:
    """Archive all windows of ended queries: final windows first, then incomplete ones."""
    slug, moved = sweep.cluster.slug, 0
    ended_rows = Query.objects.filter(pk__in=over[:ENDED], cluster=sweep.cluster)
    rows = ended_rows.only("name", "cluster", "state", "ended_at", "retention_s")
    ended = {query.pk: query for query in rows}
    closed: list[Query] = []
    for query in sorted(over[:ENDED], key=lambda query_id: sweep.known.slow.get(query_id, 0.0)):
        if query not in ended:
            # The query was deleted: nobody can read its windows.
            final_windows.drop(sweep.client, slug, query)
        elif _is_closed(ended[query].ended_at, watermarks_now, sweep.now_ms):
            closed.append(ended[query])
    for start in range(0, len(closed), TOGETHER):
        if sweep.is_over:
            break
        some = closed[start : start + TOGETHER]
        # After its retention a query does not wait for users' aggregates.
        for is_old in (False, True):
            batch = [pk for pk in some if _is_old(sweep, pk) == is_old]
            moved += _close(sweep, watermarks_now, batch, hurry=is_old)
    return moved


def _is_closed(ended_at: datetime | None, watermarks_now: Watermarks, now_ms: int) -> bool:
    """Return True if no batch can write to a query any more."""
    if ended_at is None:
        return False
    ended_ms = round(ended_at.timestamp() * 1000)
    return watermarks_now.clock_ms > ended_ms + ENDED_MS or now_ms > ended_ms + ABANDONED_MS


def _is_old(sweep: Pass, ended: Query) -> bool:
    assert ended.ended_at is not None
    return sweep.now_ms > (ended.ended_at.timestamp() + ended.retention_s) * 1000


def _close(sweep: Pass, watermarks_now: Watermarks, ended: Sequence[Query], *, hurry: bool) -> int:
    """Archive the windows of ended queries, and drop the state of completed queries."""
    slug = sweep.cluster.slug
    known = readable([query.pk for query in ended])
    if hurry:
        for query_id in ended:
            if query_id.pk not in known:
                drop_all(sweep.client, sweep.cluster, query_id)
    times = window_timings(sweep.cluster.pk, known)
    final = {query: times[query].final_until(watermarks_now) for query in known}
    until = {query: ms for query, ms in final.items() if ms is not None}
    final_windows.freeze(sweep.client, slug, until, sweep.now_ms)
    moved, done = move_windows(sweep, list(until), hurry=hurry)
    done |= known.keys() - until.keys()
    final_windows.freeze(sweep.client, slug, dict.fromkeys(done, final_windows.FOREVER), None)
    rest, done = move_windows(sweep, list(done), hurry=hurry)
    final_windows.forget(sweep.client, slug, list(done))
    for query in done:
        sweep.known.slow.pop(query, None)
    return moved + rest


def _cut_long(sweep: Pass, live: Sequence[int]) -> int:
    """Archive open windows beyond the retention of their query.

    They did not become final because a stream has no records, or records wait for ever.
    """
    known, moved = sweep.known, 0
    some = [query for query in live if query > known.counted][:COUNTED]
    known.counted = some[-1] if len(some) == COUNTED else 0
    for index, (query, until) in enumerate(_too_long(sweep, some)):
        # Every pass cuts one query at least, so that the use of Redis is bounded.
        if index and sweep.is_over:
            known.counted = query - 1
            break
        if computation_of(query) is None:
            drop_until(sweep.client, sweep.cluster, query, until)
            continue
        final_windows.freeze(sweep.client, sweep.cluster.slug, {query: until}, None)
        moved += move_windows(sweep, [query], hurry=True)[0]
    return moved


def _too_long(sweep: Pass, queries: Sequence[int]) -> list[tuple[int, int]]:
    """Return the queries with windows beyond their retention, and until when to archive."""
    kept, slug = retentions(queries), sweep.cluster.slug
    too_long: list[tuple[int, int]] = []
    for query, (count, first, last) in sorted(
        final_windows.extent(sweep.client, slug, queries).items()
    ):
        oldest_ms, surplus = last - kept[query].ms, count - kept[query].windows
        until = oldest_ms if first < oldest_ms else None
        if surplus > 0:
            until = final_windows.start_behind(sweep.client, slug, query, surplus)
        if until is not None:
            too_long.append((query, until))
    return too_long


def move_windows(
    sweep: Pass, queries: Sequence[int], *, hurry: bool = False
) -> tuple[int, set[int]]:
    """Archive the frozen windows of queries; return how many, and the queries without further ones.

    At least a page of each, then as long as the pass lasts. A window for which a user's aggregate
    had no time waits for the next pass, with all windows after it; with `hurry` it is moved with
    the error in the place of the value.
    """
    left = {query: (computation, _OLDEST) for query, computation in readable(queries).items()}
    moved, done = 0, set(queries) - left.keys()
    while left:
        pages = read_pages(sweep.client, sweep.cluster.slug, left, 0.0 if hurry else PAGE_S)
        ready = {query: _ready(page, hurry=hurry) for query, page in pages.items()}
        moved += _move(sweep, {query: (some, pages[query].final_at_ms)
                              for query, some in ready.items() if some})  # fmt: skip
        for query, page in pages.items():
            if len(ready[query]) < sum(map(page.is_frozen, page.windows)):
                sweep.known.slow[query] = time.monotonic()
                del left[query]
            elif _is_last(page):
                sweep.known.slow.pop(query, None)
                del left[query]
                done.add(query)
                if page.has_blocks and page.final_ms is not None:
                    final_windows.release(sweep.client, sweep.cluster.slug, query, page.final_ms)
            else:
                left[query] = left[query][0], replace(_OLDEST, after=page.next)
        if sweep.is_over:
            break
    return moved, done


def _ready(page: WindowsPage, *, hurry: bool) -> list[StoredWindow]:
    """Return the frozen windows of a page up to the first one that is not computed."""
    frozen = [window for window in page.windows if page.is_frozen(window)]
    return frozen if hurry else list(takewhile(lambda window: window.row.attempted, frozen))


def _is_last(page: WindowsPage) -> bool:
    """Return True if no window after a page is frozen."""
    return not page.next or page.final_ms is None or start_of(page.next) > page.final_ms


def _move(sweep: Pass, frozen: Mapping[int, tuple[Sequence[StoredWindow], int | None]]) -> int:
    """Write windows of queries to the archive, then remove them from Redis; return how many."""
    archive.insert_all(
        sweep.cluster.pk,
        {query: [_archived(window, final_at_ms) for window in windows]
         for query, (windows, final_at_ms) in frozen.items()},
    )  # fmt: skip
    # After the insertion: a window is always in one of both.
    slug = sweep.cluster.slug
    moved = {query: ([member for window in windows for member in window.members], windows[-1].place)
            for query, (windows, _) in frozen.items()}  # fmt: skip
    final_windows.remove_all(sweep.client, slug, moved)
    for query in sweep.followed.intersection(frozen):
        note_final(sweep.client, slug, query, max(item.row.batch for item in frozen[query][0]))
    return sum(len(windows) for windows, _ in frozen.values())


def _archived(window: StoredWindow, final_at_ms: int | None) -> Archived:
    row = window.row
    values = [Raised(row.errors[name]) if name in row.errors else value
              for name, value in row.values.items()]  # fmt: skip
    if row.sampled is not None:
        values.append(row.sampled)
    return Archived(window.place, tuple(row.key.values()), values, row.batch, final_at_ms)
