"""The state of sinks for people, alerts and metrics."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from django.utils import timezone

from controlplane.errors import Conflict
from controlplane.models import Sink
from controlplane.results.feed import FeedPlace
from controlplane.sinks.catalog import KINDS
from controlplane.sinks.columns import result_table
from controlplane.sinks.reading import MOST_COUNTED, ResultReader

# A sink may be so far behind, besides the time for which its kind collects results.
LIMIT_S: Final = 60.0
# The settings that name where a sink writes.
_TARGETS: Final = ("url", "table", "topic", "stream")
# For so long after a loss the sink is shown as losing results.
_LOSS: Final = timedelta(hours=1)
# A working sink notes every few seconds that it has written everything.
_NOTED_S: Final = 8.0


class SinkState(StrEnum):
    """What a sink does."""

    WRITING = "writing"
    BEHIND = "behind"
    FAILING = "failing"
    PAUSED = "paused"


@dataclass(frozen=True, slots=True)
class SinkStatus:
    """A sink; `lag_s`: for how long it has not written everything; `waiting`: results, bounded."""

    sink: Sink
    state: SinkState
    lag_s: float
    waiting: int
    is_counted: bool
    refused_kept: int
    is_losing: bool

    @property
    def guarantee(self) -> str:
        """Return the guarantee of its kind."""
        return KINDS[self.sink.kind].guarantee

    @property
    def title(self) -> str:
        """Return the title of its kind."""
        return KINDS[self.sink.kind].title

    @property
    def target(self) -> str:
        """Return where it writes."""
        settings = self.sink.settings
        return next((str(settings[name]) for name in _TARGETS if settings.get(name)), "")


def statuses_of(sinks: Iterable[Sink]) -> list[SinkStatus]:
    """Return the statuses of sinks with the results that wait."""
    return [_status(sink, _waiting(sink)) for sink in sinks]


def exceeded(sink: Sink, now: datetime) -> bool:
    """Return whether a sink is too far behind, or has lost results in the last hour."""
    return not sink.paused and (lag_s(sink, now) > limit_s(sink) or is_losing(sink, now))


def lag_s(sink: Sink, now: datetime) -> float:
    """Return for how long (s) a sink has had results to write, 0 if it has none; not if paused."""
    behind = (now - sink.caught_up_at).total_seconds()
    return behind if behind > _NOTED_S else 0.0


def limit_s(sink: Sink) -> float:
    """Return by how much (s) a sink may be behind."""
    return LIMIT_S + float(sink.settings.get("every_s", 0))


def is_losing(sink: Sink, now: datetime) -> bool:
    """Return whether results were deleted unread in the last hour."""
    return sink.lost_at is not None and now - sink.lost_at < _LOSS


@dataclass(frozen=True, slots=True)
class WorstSink:
    """The sink of a cluster that is the farthest behind its limit, and why, for people."""

    lag_s: float
    limit_s: float
    text: str


def worst_sinks(now: datetime) -> dict[int, WorstSink]:
    """Return by cluster the worst sink that is behind its limit or loses results, if any."""
    worst: dict[int, WorstSink] = {}
    for sink in Sink.objects.filter(paused=False).select_related("query"):
        if not exceeded(sink, now):
            continue
        why = f"{sink.lost:,} results were deleted unread" if is_losing(sink, now) else sink.error
        candidate = WorstSink(
            lag_s(sink, now), limit_s(sink), f"{sink.query.name}/{sink.name}: {why or 'is behind'}"
        )
        known = worst.get(sink.query.cluster_id)
        if known is None or candidate.lag_s - candidate.limit_s > known.lag_s - known.limit_s:
            worst[sink.query.cluster_id] = candidate
    return worst


def _status(sink: Sink, waiting: int) -> SinkStatus:
    now = timezone.now()
    state = SinkState.WRITING
    if sink.paused:
        state = SinkState.PAUSED
    elif sink.error:
        state = SinkState.FAILING
    elif lag_s(sink, now) > limit_s(sink):
        state = SinkState.BEHIND
    return SinkStatus(
        sink, state, lag_s(sink, now) if waiting else 0.0, waiting, waiting < MOST_COUNTED,
        sink.refused_results.count(), is_losing(sink, now),
    )  # fmt: skip


def _waiting(sink: Sink) -> int:
    try:
        reader = ResultReader.of(sink, result_table(sink.query))
    except Conflict:
        return 0
    return reader.waiting(FeedPlace.read(sink.position))


def summary_text(statuses: Sequence[SinkStatus]) -> str:
    """Return how many sinks are in each state, such as 2 writing, 1 paused."""
    counts = {state: sum(item.state == state for item in statuses) for state in SinkState}
    return ", ".join(f"{count} {state}" for state, count in counts.items() if count)
