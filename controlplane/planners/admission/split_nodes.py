"""The split nodes of a cluster: measured and expected loads."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from math import isnan
from typing import Final

from algorithms.vocabulary import Floats
from controlplane.catalog.split_reading import reading_of
from controlplane.models import Cluster
from controlplane.planners.admission.cluster_forecast import ClusterForecast, cluster_forecast
from controlplane.telemetry.samples import value_at
from controlplane.telemetry.series import newest_batches
from controlplane.telemetry.time_series import latest_values
from controlplane.wire.routing.split_assignment import SplitShares

# Rates of streams are means of about so many micro-batches, too.
RECENT_BATCHES: Final = 10
_MEANS: Final = ("split_loads", "split_utilisation")


@dataclass(frozen=True)
class SplitNodeRow:
    """A split node.

    `streams`: how many it reads, whole or in part, 0: it is closed. `capacity`: records/s, None:
    neither declared nor measured. `load`: records/s that it read in the last micro-batches,
    `utilisation`: the used share of its capacity, `waiting`: records in its queue now,
    `latency_ms`: how long a record waits in it; None: not measured. `expected`: the highest
    records/s of the next periods, computed at `expected_at`.
    """

    index: int
    streams: int
    capacity: float | None
    load: float | None
    utilisation: float | None
    waiting: int | None
    latency_ms: float | None
    expected: float
    expected_at: datetime

    @property
    def share(self) -> float | None:
        """Return the expected load over the capacity, None if it is not known."""
        return self.expected / self.capacity if self.capacity else None

    @property
    def free(self) -> float | None:
        """Return the records/s that are expected to stay free, None if they are not known."""
        return None if self.capacity is None else self.capacity - self.expected


def split_node_table(
    cluster: Cluster, forecast: ClusterForecast | None = None,
    shares: SplitShares | None = None,
) -> list[SplitNodeRow]:  # fmt: skip
    """Return the split nodes by index.

    `forecast`: of all streams, `shares`: which split nodes read them; if they were read before.
    """
    forecast = forecast or cluster_forecast(cluster)
    shares = reading_of(cluster).shares() if shares is None else shares
    sample = latest_values(cluster) or {}
    recent = newest_batches(cluster, _MEANS, RECENT_BATCHES).window()
    expected = forecast.split_loads(shares)
    streams = Counter(split for own in shares.values() for split in own)
    count = max(cluster.splits, max(streams, default=-1) + 1)
    return [
        SplitNodeRow(
            index=index,
            streams=streams[index],
            capacity=forecast.capacity or None,
            load=_known(recent.column(recent["split_loads"], index)),
            utilisation=_known(recent.column(recent["split_utilisation"], index)),
            waiting=value_at(sample, "split_waiting", index),
            latency_ms=value_at(sample, "split_latency", index),
            expected=round(float(expected[index].max()), 3) if index in expected else 0.0,
            expected_at=forecast.computed_at,
        )
        for index in range(count)
    ]


def _known(values: Floats) -> float | None:
    return None if isnan(values[0]) else float(values[0])
