"""Archiving: windows that nothing changes any more leave Redis for the disk.

One pass looks at the queries that have windows in Redis. Where the streams are committed beyond the
end of windows, these are frozen, finished, written to the archive, and only then removed from
Redis. Each step can be done again: the next pass finishes what one that was killed began, and a
reader, who looks into Redis first and then into the archive, always finds a window in one of them.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import takewhile
from typing import Final

import redis

from controlplane.archive import windows as archive
from controlplane.archive.values import Raised
from controlplane.archive.windows import Archived
from controlplane.connections import redis_client
from controlplane.models import Cluster, Query
from controlplane.selectors.windows.times import Times, times_of
from controlplane.services.unreadable_windows import (
    computation_of,
    drop_all,
    drop_until,
    readable,
)
from controlplane.wire.results import (
    Range,
    StoredWindow,
    WindowsPage,
    final_windows,
    read_pages,
    watermarks,
)
from controlplane.wire.results.feed import followed, note_final
from controlplane.wire.results.places import start_of
from controlplane.wire.results.watermarks import Watermarks

logger = logging.getLogger(__name__)

# A pass takes about so long, however much there is to do; the next one goes on.
PASS_S: Final = 1.5
# Of a cluster, a pass takes more than this (s) only for windows that have waited for so long (s):
# what a query costs is the same for one window and for a dozen.
SHARE_S: Final = 0.2
WAIT_S: Final = 10.0
# Windows of a query that are finished, written and removed together, and of how many queries.
PAGE: Final = 500
TOGETHER: Final = 50
# Users' aggregates have so long for a page; what is left waits for the next pass.
PAGE_S: Final = 0.5
# Queries that have ended and are looked at in a pass, and live ones whose windows are counted.
ENDED: Final = 500
COUNTED: Final = 200
# Batches that were planned before a query ended may write to it for so long, by their clock; by
# ours where no batch comes.
ENDED_MS: Final = 30_000
ABANDONED_MS: Final = 600_000
_LOCK: Final = "weir:archiver"
_LOCK_MS: Final = 60_000
_RELEASE: Final = (
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"
)


@dataclass
class Known:
    """What a process remembers of a cluster's queries from pass to pass.

    `times` by query; `done`: up to which start windows were frozen; `since`: when there were first
    windows to freeze that still are; `slow`: when the aggregates of queries last had too little
    time for a page; `counted`: the last query whose windows were counted.
    """

    times: dict[int, Times] = field(default_factory=dict)
    done: dict[int, int] = field(default_factory=dict)
    since: dict[int, float] = field(default_factory=dict)
    slow: dict[int, float] = field(default_factory=dict)
    counted: int = 0


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass over one cluster; `followed`: the queries whose changes somebody reads."""

    client: "redis.Redis"
    cluster: Cluster
    known: Known
    now_ms: int
    deadline: float
    followed: frozenset[int] = frozenset()
    begun: float = field(default_factory=time.monotonic)

    @property
    def is_over(self) -> bool:
        """Return whether the time of the pass is used up."""
        return time.monotonic() > self.deadline

    def goes_on(self, since: float) -> bool:
        """Return whether there is time for windows that wait since then."""
        now = time.monotonic()
        return now < min(self.deadline, self.begun + SHARE_S) or (
            now < self.deadline and now > since + WAIT_S
        )


_KNOWN: dict[int, Known] = {}
_OLDEST: Final = Range(limit=PAGE, newest_first=False)


def archive_windows(now: datetime) -> int:
    """Archive what is final in every cluster; return how many windows have left Redis.

    Where another process does so at this moment, nothing happens.
    """
    client, token = redis_client(), f"{time.time_ns()}"
    if not client.set(_LOCK, token, nx=True, px=_LOCK_MS):
        return 0
    try:
        clusters = sorted(Cluster.objects.order_by("pk"), key=_slow_at)
        now_ms = round(now.timestamp() * 1000)
        deadline = time.monotonic() + PASS_S
        return sum(
            archive_cluster(
                Pass(client, one, _KNOWN.setdefault(one.pk, Known()), now_ms, deadline,
                     frozenset(followed(client, one.slug, now_ms)))
            )
            for one in clusters
        )  # fmt: skip
    finally:
        client.register_script(_RELEASE)(keys=[_LOCK], args=[token])


def _slow_at(cluster: Cluster) -> float:
    """Return when slow queries last had their turn: clusters without them are first."""
    known = _KNOWN.get(cluster.pk)
    return max(known.slow.values(), default=0.0) if known else 0.0


def archive_cluster(turn: Pass) -> int:
    """Archive what is final in a cluster, as far as the time goes; return how many windows."""
    slug = turn.cluster.slug
    # The watermarks first: what is complete for them is in Redis by now.
    marks = watermarks.read(turn.client, slug)
    there = final_windows.stored(turn.client, slug)
    live = _live(turn, there)
    moved = _archive_live(turn, marks, live)
    moved += _archive_ended(turn, marks, sorted(set(there) - set(live)))
    return moved + _cut_long(turn, live)


def _live(turn: Pass, there: Sequence[int]) -> list[int]:
    """Return which queries are not over, and learn their times."""
    states = (Query.State.PENDING, Query.State.RUNNING, Query.State.ENDING)
    found = Query.objects.filter(cluster=turn.cluster, state__in=states).values_list(
        "pk", flat=True
    )
    live = sorted(set(there).intersection(found))
    known = turn.known
    known.times |= times_of(turn.cluster.pk, set(live) - known.times.keys())
    for gone in known.times.keys() - set(live):
        del known.times[gone]
        for of_query in (known.done, known.since, known.slow):
            of_query.pop(gone, None)
    return [query for query in live if query in known.times]


def _archive_live(turn: Pass, marks: Watermarks, live: Sequence[int]) -> int:
    """Archive the windows that have become final, first those that are waited for."""
    due, known = _due(turn, marks, live), turn.known
    # Slow ones are last, and have their turn one after the other.
    queries = sorted(due, key=lambda one: (known.slow.get(one, 0.0), one not in turn.followed,
                                           known.since[one]))  # fmt: skip
    moved = 0
    for at in range(0, len(queries), TOGETHER):
        some = queries[at : at + TOGETHER]
        if at and not turn.goes_on(min(known.since[query] for query in some)):
            break
        moved += _freeze_and_move(turn, {query: due[query] for query in some})
    return moved


def _due(turn: Pass, marks: Watermarks, live: Sequence[int]) -> dict[int, int]:
    """Return until when windows of queries are final, where that may be more than is frozen."""
    due: dict[int, int] = {}
    known, now = turn.known, time.monotonic()
    for query in live:
        times = known.times[query]
        until = times.final_until(marks)
        # Between two starts nothing becomes final.
        if until is not None and until // times.slide_ms != known.done.get(query):
            due[query] = until
            known.since.setdefault(query, now)
    return due


def _freeze_and_move(turn: Pass, due: Mapping[int, int]) -> int:
    frozen = final_windows.freeze(turn.client, turn.cluster.slug, due, turn.now_ms)
    there = [query for query, outcome in frozen.items() if outcome]
    moved, done = move_windows(turn, there)
    for query in done | (set(frozen) - set(there)):
        if frozen[query] != final_windows.BEHIND:
            turn.known.done[query] = due[query] // turn.known.times[query].slide_ms
            turn.known.since.pop(query, None)
    return moved


def _archive_ended(turn: Pass, marks: Watermarks, over: Sequence[int]) -> int:
    """Archive all windows of queries that have ended: what was final, then what was cut off."""
    slug, moved = turn.cluster.slug, 0
    found = Query.objects.filter(pk__in=over[:ENDED], cluster=turn.cluster)
    rows = found.only("name", "cluster", "state", "ended_at", "retention_s")
    ended = {query.pk: query for query in rows}
    closed: list[Query] = []
    for query in sorted(over[:ENDED], key=lambda one: turn.known.slow.get(one, 0.0)):
        if query not in ended:
            # Nobody can ask for them any more.
            final_windows.drop(turn.client, slug, query)
        elif _is_closed(ended[query].ended_at, marks, turn.now_ms):
            closed.append(ended[query])
    for at in range(0, len(closed), TOGETHER):
        if turn.is_over:
            break
        some = closed[at : at + TOGETHER]
        # Beyond its retention a query does not wait for its users' aggregates.
        for is_old in (False, True):
            moved += _close(turn, marks, [one for one in some if _is_old(turn, one) == is_old],
                            hurry=is_old)  # fmt: skip
    return moved


def _is_closed(ended_at: datetime | None, marks: Watermarks, now_ms: int) -> bool:
    """Return whether no batch can write to a query any more."""
    if ended_at is None:
        return False
    ended_ms = round(ended_at.timestamp() * 1000)
    return marks.clock_ms > ended_ms + ENDED_MS or now_ms > ended_ms + ABANDONED_MS


def _is_old(turn: Pass, ended: Query) -> bool:
    assert ended.ended_at is not None
    return turn.now_ms > (ended.ended_at.timestamp() + ended.retention_s) * 1000


def _close(turn: Pass, marks: Watermarks, ended: Sequence[Query], *, hurry: bool) -> int:
    """Archive what queries that have ended have in Redis, and forget those of which that is all."""
    slug = turn.cluster.slug
    known = readable([query.pk for query in ended])
    if hurry:
        for one in ended:
            if one.pk not in known:
                drop_all(turn.client, turn.cluster, one)
    times = times_of(turn.cluster.pk, known)
    final = {query: times[query].final_until(marks) for query in known}
    until = {query: ms for query, ms in final.items() if ms is not None}
    final_windows.freeze(turn.client, slug, until, turn.now_ms)
    moved, done = move_windows(turn, list(until), hurry=hurry)
    done |= known.keys() - until.keys()
    final_windows.freeze(turn.client, slug, dict.fromkeys(done, final_windows.FOREVER), None)
    rest, done = move_windows(turn, list(done), hurry=hurry)
    final_windows.forget(turn.client, slug, list(done))
    for query in done:
        turn.known.slow.pop(query, None)
    return moved + rest


def _cut_long(turn: Pass, live: Sequence[int]) -> int:
    """Archive windows that are open for longer, or are more, than their query keeps of any.

    They never became final, for want of records of a stream or because records wait for ever.
    """
    known, moved = turn.known, 0
    some = [query for query in live if query > known.counted][:COUNTED]
    known.counted = some[-1] if len(some) == COUNTED else 0
    for at, (query, until) in enumerate(_too_long(turn, some)):
        # One is cut in every pass, so that Redis is bounded however long the others take.
        if at and turn.is_over:
            known.counted = query - 1
            break
        if computation_of(query) is None:
            drop_until(turn.client, turn.cluster, query, until)
            continue
        final_windows.freeze(turn.client, turn.cluster.slug, {query: until}, None)
        moved += move_windows(turn, [query], hurry=True)[0]
    return moved


def _too_long(turn: Pass, queries: Sequence[int]) -> list[tuple[int, int]]:
    """Return the queries that have more than they keep, in order, and until when that is to go."""
    kept, slug = _retention(queries), turn.cluster.slug
    found: list[tuple[int, int]] = []
    for query, (count, first, last) in sorted(
        final_windows.extent(turn.client, slug, queries).items()
    ):
        kept_ms, kept_windows = kept[query]
        until = last - kept_ms if first < last - kept_ms else None
        if count > kept_windows:
            until = final_windows.start_behind(turn.client, slug, query, count - kept_windows)
        if until is not None:
            found.append((query, until))
    return found


def _retention(queries: Sequence[int]) -> dict[int, tuple[int, int]]:
    """Return by query for how long (ms of event time) its windows are kept, and how many."""
    found = Query.objects.filter(pk__in=queries)
    rows = found.values_list("pk", "retention_s", "retention_windows")
    return {pk: (seconds * 1000, windows) for pk, seconds, windows in rows}


def move_windows(
    turn: Pass, queries: Sequence[int], *, hurry: bool = False
) -> tuple[int, set[int]]:
    """Move the frozen windows of queries into the archive; return how many, and of whom all.

    At least a page of each, then as long as the pass lasts. A window for which a user's aggregate
    had no time is left for the next pass, with all behind it.
    `hurry`: it is moved, too, with the reason in the place of the value.
    """
    left = {query: (one, _OLDEST) for query, one in readable(queries).items()}
    moved, done = 0, set(queries) - left.keys()
    while left:
        pages = read_pages(turn.client, turn.cluster.slug, left, 0.0 if hurry else PAGE_S)
        ready = {query: _ready(page, hurry=hurry) for query, page in pages.items()}
        moved += _move(turn, {query: (some, pages[query].final_at_ms)
                              for query, some in ready.items() if some})  # fmt: skip
        for query, page in pages.items():
            if len(ready[query]) < sum(map(page.is_frozen, page.windows)):
                turn.known.slow[query] = time.monotonic()
                del left[query]
            elif _is_last(page):
                turn.known.slow.pop(query, None)
                del left[query]
                done.add(query)
                if page.has_blocks and page.final_ms is not None:
                    final_windows.release(turn.client, turn.cluster.slug, query, page.final_ms)
            else:
                left[query] = left[query][0], replace(_OLDEST, after=page.next)
        if turn.is_over:
            break
    return moved, done


def _ready(page: WindowsPage, *, hurry: bool) -> list[StoredWindow]:
    """Return the frozen windows of a page, up to the first that is not computed yet."""
    frozen = [one for one in page.windows if page.is_frozen(one)]
    return frozen if hurry else list(takewhile(lambda one: one.row.attempted, frozen))


def _is_last(page: WindowsPage) -> bool:
    """Return whether no window behind a page is frozen."""
    return not page.next or page.final_ms is None or start_of(page.next) > page.final_ms


def _move(turn: Pass, frozen: Mapping[int, tuple[Sequence[StoredWindow], int | None]]) -> int:
    """Write windows of queries into the archive, then remove them from Redis; return how many."""
    archive.insert_all(
        turn.cluster.pk,
        {query: [_archived(one, final_at_ms) for one in windows]
         for query, (windows, final_at_ms) in frozen.items()},
    )  # fmt: skip
    # Only now: until here both have them.
    slug = turn.cluster.slug
    gone = {query: ([member for one in windows for member in one.members], windows[-1].place)
            for query, (windows, _) in frozen.items()}  # fmt: skip
    final_windows.remove_all(turn.client, slug, gone)
    for query in turn.followed.intersection(frozen):
        note_final(turn.client, slug, query, max(one.row.batch for one in frozen[query][0]))
    return sum(len(windows) for windows, _ in frozen.values())


def _archived(window: StoredWindow, final_at_ms: int | None) -> Archived:
    row = window.row
    values = [Raised(row.errors[name]) if name in row.errors else value
              for name, value in row.values.items()]  # fmt: skip
    return Archived(window.place, tuple(row.key.values()), values, row.batch, final_at_ms)
