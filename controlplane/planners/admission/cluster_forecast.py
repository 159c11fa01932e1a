"""The forecast of all streams of a cluster: computed by the watch loop, stored, read by pages.

With 10,000 streams the input of the planner and its predictions take more than a second of
processor time; a page needs a few numbers of them.
"""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import numpy as np
from django.utils import timezone

from algorithms.vocabulary import Floats, Ints
from controlplane.errors import Conflict
from controlplane.models import Cluster, StoredForecast
from controlplane.planners.admission.inputs import AdmissionInput
from controlplane.planners.admission.observation import read_input
from controlplane.planners.admission.problem import Outlook, predictions
from controlplane.planners.admission.redirections import plan_redirections
from controlplane.policies.settings import PolicySettings
from controlplane.policies.store import policy_of
from controlplane.telemetry.arrivals import PERIOD_S, counted_until
from controlplane.telemetry.series import start_of
from controlplane.wire.routing.split_assignment import SourcePartition, SplitShares

# Forecast periods: those of the near outlook, and the time until the next computation.
PERIODS: Final = 18
# The watch loop computes a forecast again after this time.
RENEWED: Final = timedelta(seconds=60)
# An older forecast is stale: pages compute it on demand.
STALE: Final = timedelta(seconds=90)
# Forecasts of clusters that are no longer watched are deleted after this time.
_KEPT: Final = timedelta(days=1)
_LEVEL: Final = 1


@dataclass(frozen=True, eq=False)
class ClusterForecast:
    """The forecast of s streams in k periods of `seconds`, and the redirections that are planned.

    `starts_at`: the start of the first period, None before the first record; `capacity`: records/s
    of each split node, 0 if it is not known. `streams` int64[s], ascending; `expected` float32[s,
    k]: records/s. `moves`: the target of each partition that the policy's strategy would redirect,
    of which a stream of the log is one.
    """

    computed_at: datetime
    starts_at: datetime | None
    seconds: int
    capacity: float
    streams: Ints
    expected: Floats
    moves: Mapping[SourcePartition, int]

    def split_loads(
        self, shares: SplitShares, starts: Sequence[datetime] = ()
    ) -> dict[int, Floats]:
        """Return the records/s of each open split node, float64[k].

        `starts`: of the periods, by default the first ones that plans are made for; later than the
        last forecast period, its rates are returned.
        """
        read = [(place, index, part) for place, stream in enumerate(self.streams.tolist())
                for index, part in shares.get(stream, {}).items()]  # fmt: skip
        if not read:
            return {}
        places, splits, parts = (np.array(column) for column in zip(*read, strict=True))
        rates = self._rates(starts)[places] * parts[:, None]
        return {
            index: rates[splits == index].sum(axis=0, dtype=np.float64)
            for index in np.unique(splits).tolist()
        }

    def of(self, stream: int, starts: Sequence[datetime]) -> Floats:
        """Return the expected records/s of a stream in periods, zeros of an unknown stream."""
        place = int(np.searchsorted(self.streams, stream))
        if place == len(self.streams) or self.streams[place] != stream:
            return np.zeros(len(starts))
        rates: Floats = self._rates(starts)[place].astype(np.float64)
        return rates

    def left_for(
        self, stream: int, shares: SplitShares, starts: Sequence[datetime]
    ) -> Floats | None:
        """Return the rate for which the other streams of its split nodes leave room, float64[k].

        None if the capacity is not known.
        """
        if not self.capacity:
            return None
        loads, own = self.split_loads(shares, starts), self.of(stream, starts)
        nothing = np.zeros(len(starts))
        left: Floats = np.min(
            [(self.capacity - loads.get(split, nothing)) / part + own
             for split, part in shares[stream].items() if part], axis=0,
        )  # fmt: skip
        return left

    def _rates(self, starts: Sequence[datetime]) -> Floats:
        if not starts or self.starts_at is None:
            return self.expected[:, : len(starts) or Outlook().horizon]
        away = [(start - self.starts_at).total_seconds() / self.seconds for start in starts]
        last = max(0, self.expected.shape[1] - 1)
        places = np.clip(np.round(away).astype(np.int64), 0, last)
        rates: Floats = self.expected[:, places]
        return rates


def cluster_forecast(
    cluster: Cluster, policy: PolicySettings | None = None, now: datetime | None = None
) -> ClusterForecast:
    """Return the stored forecast of a cluster; a stale one is computed and stored."""
    present, chosen = now or timezone.now(), policy or policy_of(cluster)
    row = StoredForecast.objects.filter(cluster=cluster).first()
    if row is not None and _is_current(row, cluster, chosen, present):
        return _unpacked(row)
    return store_forecast(cluster, chosen, present)


def keep_forecast(cluster: Cluster, policy: PolicySettings, now: datetime) -> bool:
    """Compute the forecast of a cluster with streams again if it is due; return True if it was."""
    row = StoredForecast.objects.filter(cluster=cluster).defer("data").first()
    if row is not None and now - row.computed_at < RENEWED and row.basis == _basis(cluster, policy):
        return False
    if not cluster.streams.exists():
        return False
    store_forecast(cluster, policy, now)
    return True


def store_forecast(cluster: Cluster, policy: PolicySettings, now: datetime) -> ClusterForecast:
    """Compute the forecast of a cluster, store it, and return it."""
    given = read_input(cluster, now)
    computed = _computed(cluster, policy, given, now)
    StoredForecast.objects.update_or_create(
        cluster=cluster,
        defaults={
            "computed_at": now, "starts_at": computed.starts_at, "seconds": computed.seconds,
            "capacity": computed.capacity, "basis": _basis(cluster, policy),
            "moves": [[*place, target] for place, target in computed.moves.items()],
            "data": _packed(computed),
        },
    )  # fmt: skip
    return computed


def prune(now: datetime) -> int:
    """Delete forecasts that were not computed for a day; return how many."""
    return StoredForecast.objects.filter(computed_at__lt=now - _KEPT).delete()[0]


def _computed(
    cluster: Cluster, policy: PolicySettings, given: AdmissionInput, now: datetime
) -> ClusterForecast:
    streams = np.array([stream.id for stream in given.streams], np.int64)
    expected = np.zeros((0, PERIODS))
    if given.streams:
        expected = predictions(given, Outlook(PERIODS)).expected
    return ClusterForecast(
        now, _newest(cluster), given.seconds, given.capacity, streams,
        expected.astype(np.float32), _moves(cluster, policy, given),
    )  # fmt: skip


def _moves(
    cluster: Cluster, policy: PolicySettings, given: AdmissionInput
) -> Mapping[SourcePartition, int]:
    """Return the target of each partition that the strategy would redirect now."""
    try:
        return plan_redirections(cluster, policy, given).moves
    except Conflict:
        return {}


def _newest(cluster: Cluster) -> datetime | None:
    """Return the end of the newest complete period: the start of the first forecast one."""
    until = counted_until(cluster)
    return None if until is None else start_of(until, PERIOD_S)


def _is_current(
    row: StoredForecast, cluster: Cluster, policy: PolicySettings, now: datetime
) -> bool:
    """Return True if the forecast is young, of the present settings, and follows the records."""
    newest = _newest(cluster)
    if row.basis != _basis(cluster, policy) or (row.starts_at is None) != (newest is None):
        return False
    if newest is not None and row.starts_at is not None and abs(newest - row.starts_at) > STALE:
        return False
    return now - row.computed_at <= STALE


def _basis(cluster: Cluster, policy: PolicySettings) -> str:
    """Return the settings on which a forecast and its redirections depend."""
    values = (
        cluster.split_capacity, cluster.splits, policy.redirect_strategy,
        policy.redirect_latency_s, policy.close_split_nodes, policy.split_nodes,
    )  # fmt: skip
    return " ".join(str(value) for value in values)


def _packed(forecast: ClusterForecast) -> bytes:
    rates = np.asarray(forecast.expected, "<f4")
    return zlib.compress(forecast.streams.astype("<i8").tobytes() + rates.tobytes(), _LEVEL)


def _unpacked(row: StoredForecast) -> ClusterForecast:
    data = zlib.decompress(bytes(row.data))
    count = len(data) // (8 + 4 * PERIODS)
    streams = np.frombuffer(data, "<i8", count)
    rates: Any = np.frombuffer(data, "<f4", count * PERIODS, 8 * count).reshape(count, PERIODS)
    return ClusterForecast(
        row.computed_at, row.starts_at, row.seconds, row.capacity, streams.astype(np.int64), rates,
        {SourcePartition(*place): target for *place, target in row.moves},
    )  # fmt: skip
