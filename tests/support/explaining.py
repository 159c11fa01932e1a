"""Half an hour of a cluster: roll-ups of samples, and arrivals of streams."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from controlplane.models import Cluster
from controlplane.telemetry import time_series
from controlplane.telemetry.series import start_of
from tests.support.series import add_arrivals

PERIOD: Final = timedelta(seconds=10)
# Ten-second periods of half an hour.
PERIODS: Final = 180
# A value by the minutes before the newest period.
OverTime = Callable[[float], float]


def steps(before: float, after: float, minutes: float) -> OverTime:
    """Return a value that changes some minutes before the end."""
    return lambda ago: after if ago < minutes else before


def record_past(
    cluster: Cluster,
    now: datetime,
    loads: Sequence[OverTime],
    rates: Mapping[int, OverTime],
    **changed: Any,
) -> None:
    """Store half an hour of samples: loads by node, arrivals by stream; the rest as in `changed`.

    Values of `changed` are constants or functions of the minutes before the end.
    """
    stop = start_of(now, 10)
    samples = []
    for place in range(PERIODS):
        t = stop - PERIOD * (PERIODS - place)
        ago = (stop - t).total_seconds() / 60 - PERIOD.total_seconds() / 60
        values = _sample(round(t.timestamp() * 1000), [load(ago) for load in loads])
        values |= {name: v(ago) if callable(v) else v for name, v in changed.items()}
        samples.append(values)
        # A little noise: counts are never equal.
        noise = 1 + 0.01 * (place % 3 - 1)
        add_arrivals(cluster, t, {stream: 10 * noise * rates[stream](ago) for stream in rates})
    time_series.record(cluster, samples, 10)
    Cluster.objects.filter(pk=cluster.pk).update(last_sample_at=now)


def _sample(t_ms: int, loads: Sequence[float]) -> dict[str, Any]:
    count = len(loads)
    return {
        "t": t_ms, "version": 1, "in": 100.0, "arrived": 100.0, "read": 100.0,
        "delivered": sum(loads), "rf": 1.2, "imbalance": 0.0, "p50": 200.0, "p95": 400.0,
        "p99": 500.0, "batch_ms": 500.0, "loads": list(loads), "busy": [0.2] * count,
        "tasks": [1] * count, "late": 0.0, "waiting": 0, "state_bytes": 100, "event_ms": t_ms,
        "emitted_ms": t_ms, "node_waiting": [0] * count,
        "node_processed": list(loads), "node_state": [1000] * count,
        "node_p95": [400.0] * count, "split_utilisation": [0.1, 0.1],
    }  # fmt: skip
