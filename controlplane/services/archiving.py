"""Archiving: windows that nothing changes any more leave Redis for the disk.

One pass looks at the queries that have windows in Redis. Where the streams are committed beyond the
end of windows, these are frozen, finished, written to the archive, and only then removed from
Redis. Each step can be done again: the next pass finishes what one that was killed began, and a
reader, who looks into Redis first and then into the archive, always finds a window in one of them.
"""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import redis

from controlplane.archive import windows as archive
from controlplane.archive.values import Raised
from controlplane.archive.windows import Archived
from controlplane.connections import redis_client
from controlplane.models import Cluster, Query
from controlplane.selectors.computations import computation_of_query
from controlplane.selectors.windows.times import Times, times_of
from controlplane.wire.query import BadQuery
from controlplane.wire.results import Range, StoredWindow, closing, read_page, watermarks
from controlplane.wire.results.feed import followed, note_final
from controlplane.wire.results.watermarks import Watermarks

logger = logging.getLogger(__name__)

# A pass takes about so long, however much there is to do; the next one goes on.
PASS_S: Final = 1.5
# Windows that are finished, written and removed together.
PAGE: Final = 500
# Queries whose windows in Redis are counted in a pass.
COUNTED: Final = 500
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

    `times` by query; `done`: up to which start windows were frozen; `counted`: the last query whose
    windows were counted.
    """

    times: dict[int, Times] = field(default_factory=dict)
    done: dict[int, int] = field(default_factory=dict)
    counted: int = 0


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass over one cluster."""

    client: "redis.Redis"
    cluster: Cluster
    known: Known
    now_ms: int
    deadline: float

    @property
    def is_over(self) -> bool:
        """Return whether the time of the pass is used up."""
        return time.monotonic() > self.deadline


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
        clusters = list(Cluster.objects.order_by("pk"))
        now_ms = round(now.timestamp() * 1000)
        deadline = time.monotonic() + PASS_S
        return sum(
            archive_cluster(Pass(client, one, _KNOWN.setdefault(one.pk, Known()), now_ms, deadline))
            for one in clusters
        )
    finally:
        client.register_script(_RELEASE)(keys=[_LOCK], args=[token])


def archive_cluster(turn: Pass) -> int:
    """Archive what is final in a cluster, as far as the time goes; return how many windows."""
    slug = turn.cluster.slug
    # The watermarks first: what is complete for them is in Redis by now.
    marks = watermarks.read(turn.client, slug)
    there = closing.stored(turn.client, slug)
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
        known.done.pop(gone, None)
    return [query for query in live if query in known.times]


def _archive_live(turn: Pass, marks: Watermarks, live: Sequence[int]) -> int:
    """Archive the windows that have become final."""
    due: dict[int, int] = {}
    for query in live:
        times = turn.known.times[query]
        until = times.final_until(marks)
        # Between two starts nothing becomes final.
        if until is not None and until // times.slide_ms != turn.known.done.get(query):
            due[query] = until
    frozen = closing.freeze(turn.client, turn.cluster.slug, due, turn.now_ms)
    moved = 0
    for query, outcome in frozen.items():
        if turn.is_over:
            break
        count, is_done = move_windows(turn, query) if outcome else (0, True)
        moved += count
        if is_done and outcome != closing.BEHIND:
            turn.known.done[query] = due[query] // turn.known.times[query].slide_ms
    return moved


def _archive_ended(turn: Pass, marks: Watermarks, over: Sequence[int]) -> int:
    """Archive all windows of queries that have ended: what was final, then what was cut off."""
    slug, moved = turn.cluster.slug, 0
    found = Query.objects.filter(pk__in=over[:COUNTED], cluster=turn.cluster)
    ended_at = dict(found.values_list("pk", "ended_at"))
    for query in over[:COUNTED]:
        if turn.is_over:
            break
        if query not in ended_at:
            # Nobody can ask for them any more.
            closing.drop(turn.client, slug, query)
        elif _is_closed(ended_at[query], marks, turn.now_ms):
            moved += _close(turn, marks, query)
    return moved


def _is_closed(ended_at: datetime | None, marks: Watermarks, now_ms: int) -> bool:
    """Return whether no batch can write to a query any more."""
    if ended_at is None:
        return False
    ended_ms = round(ended_at.timestamp() * 1000)
    return marks.clock_ms > ended_ms + ENDED_MS or now_ms > ended_ms + ABANDONED_MS


def _close(turn: Pass, marks: Watermarks, query: int) -> int:
    slug = turn.cluster.slug
    times = times_of(turn.cluster.pk, [query])[query]
    until = times.final_until(marks)
    moved, is_done = 0, True
    if until is not None:
        closing.freeze(turn.client, slug, {query: until}, turn.now_ms)
        moved, is_done = move_windows(turn, query)
    if is_done:
        closing.freeze(turn.client, slug, {query: closing.FOREVER}, None)
        rest, is_done = move_windows(turn, query)
        moved += rest
    if is_done:
        closing.forget(turn.client, slug, [query])
    return moved


def _cut_long(turn: Pass, live: Sequence[int]) -> int:
    """Archive windows that are open for longer, or are more, than their query keeps of any.

    They never became final, for want of records of a stream or because records wait for ever.
    """
    known, moved = turn.known, 0
    some = [query for query in live if query > known.counted][:COUNTED]
    known.counted = some[-1] if len(some) == COUNTED else 0
    kept = _retention(some)
    for query, (count, first, last) in closing.extent(turn.client, turn.cluster.slug, some).items():
        until = last - kept[query][0] if first < last - kept[query][0] else None
        if count > kept[query][1]:
            until = closing.start_at(
                turn.client, turn.cluster.slug, query, count - kept[query][1] - 1
            )
        if until is not None and not turn.is_over:
            closing.freeze(turn.client, turn.cluster.slug, {query: until}, None)
            moved += move_windows(turn, query)[0]
    return moved


def _retention(queries: Sequence[int]) -> dict[int, tuple[int, int]]:
    """Return by query for how long (ms of event time) its windows are kept, and how many."""
    found = Query.objects.filter(pk__in=queries)
    rows = found.values_list("pk", "retention_s", "retention_windows")
    return {pk: (seconds * 1000, windows) for pk, seconds, windows in rows}


def move_windows(turn: Pass, query: int) -> tuple[int, bool]:
    """Move the frozen windows of a query into the archive; return how many, and if it is all."""
    try:
        computation = computation_of_query(Query.objects.get(pk=query))
    except (BadQuery, Query.DoesNotExist) as bad:
        logger.warning("Windows of query %s stay in Redis: %s", query, bad)
        return 0, True
    slug, moved = turn.cluster.slug, 0
    while not turn.is_over:
        page = read_page(turn.client, slug, query, computation, _OLDEST)
        frozen = [one for one in page.windows if page.is_frozen(one)]
        if not frozen:
            return moved, True
        archive.insert(turn.cluster.pk, query, [_archived(one, page.final_at_ms) for one in frozen])
        # Only now: until here both have them.
        members = [member for one in frozen for member in one.members]
        closing.remove(turn.client, slug, query, members)
        moved += len(frozen)
        if query in followed(turn.client, slug, turn.now_ms):
            note_final(turn.client, slug, query, max(one.row.batch for one in frozen))
    return moved, False


def _archived(window: StoredWindow, final_at_ms: int | None) -> Archived:
    row = window.row
    values = [Raised(row.errors[name]) if name in row.errors else value
              for name, value in row.values.items()]  # fmt: skip
    return Archived(window.place, tuple(row.key.values()), values, row.batch, final_at_ms)
