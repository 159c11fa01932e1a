"""How far a cluster's event time is: in the log, and when a decision of now takes effect."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from functools import lru_cache
from typing import Final

from django.conf import settings
from django.utils import timezone

from controlplane.errors import Away
from controlplane.models import Cluster
from controlplane.telemetry.time_series import samples
from controlplane.wire.errors import LogUnavailable
from controlplane.wire.log import open_log
from controlplane.wire.log.values import Log, LogHead

# A version is published within milliseconds, and earlier positions of the log are of the past.
# What comes in between may be newer than all that is there: so much time is allowed for it.
LEAD_S: Final = 10
# Event time may be replayed faster than it passed; beyond this it has jumped.
FASTEST: Final = 1000
WATCHED: Final = timedelta(seconds=60)
AWAY_S: Final = 5


_newest: ContextVar[Mapping[int, int] | None] = ContextVar("weir_newest_event_times", default=None)


@contextmanager
def newest_read(cluster: Cluster, streams: list[int]) -> Iterator[None]:
    """Read the newest event times of streams now, for a block that is a transaction."""
    token = _newest.set(tip_of(cluster, streams).newest if streams else {})
    try:
        yield
    finally:
        _newest.reset(token)


def ahead_of(cluster: Cluster, stream_id: int) -> int | None:
    """Return an event time (ms) that no record of a stream has before a decision takes effect.

    None if the stream never had a record. Raises `Away`.
    """
    known = _newest.get()
    newest = (tip_of(cluster, [stream_id]).newest if known is None else known).get(stream_id)
    return None if newest is None else newest + round(LEAD_S * 1000 * _speed(cluster))


def tip_of(cluster: Cluster, streams: list[int]) -> LogHead:
    """Return how far the log of a cluster goes. Raises `Away`."""
    try:
        return log_of(cluster).head(streams)
    except LogUnavailable as away:
        raise Away("log_away", f"{away}. The newest event time is not known", AWAY_S) from away


def _speed(cluster: Cluster) -> float:
    """Return the seconds of event time that pass in one, at least 1."""
    now = timezone.now()
    timed = [sample for sample in samples(cluster, now - WATCHED, now, 1) if sample.get("event_ms")]
    if len(timed) < 2:  # noqa: PLR2004 - a speed takes two moments
        return 1.0
    passed: int = max(1, timed[-1]["t"] - timed[0]["t"])
    events: int = timed[-1]["event_ms"] - timed[0]["event_ms"]
    return min(max(1.0, events / passed), FASTEST)


def log_of(cluster: Cluster) -> Log:
    """Return this process's log of a cluster, to read from."""
    return _opened(cluster.log_url, cluster.slug, settings.REDIS_URL)


_opened = lru_cache(maxsize=64)(open_log)
