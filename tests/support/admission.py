"""Clusters whose streams have rates: telemetry rows as the data plane publishes them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import count
from typing import Any, Final

from controlplane.models import Cluster
from controlplane.telemetry import arrivals
from controlplane.telemetry.series import start_of

_BATCHES: Final = count(1)


def telemetry(
    end: datetime,
    streams: Mapping[int, float],
    behind: Mapping[int, tuple[float, int]] | None = None,
) -> dict[str, Any]:
    """Return the part of a telemetry row that counts arrivals."""
    return {
        "batch": next(_BATCHES),
        "emitted_ms": round(end.timestamp() * 1000),
        "streams": {str(stream): records for stream, records in streams.items()},
        "behind": {str(stream): list(row) for stream, row in (behind or {}).items()},
    }


def arrived(cluster: Cluster, end: datetime, rates: Mapping[str, Sequence[float]]) -> None:
    """Store rates in records/s of the periods before `end`, oldest first, by name of stream."""
    start = start_of(end, arrivals.PERIOD_S).timestamp()
    ids = dict(cluster.streams.values_list("name", "id"))
    periods = max(map(len, rates.values()))
    # The first row only sets the clock.
    first = start - periods * arrivals.PERIOD_S
    rows = [telemetry(datetime.fromtimestamp(first, end.tzinfo), {})]
    for place in range(periods):
        stop = datetime.fromtimestamp(first + (place + 1) * arrivals.PERIOD_S, end.tzinfo)
        counts = {ids[name]: row[place] * arrivals.PERIOD_S for name, row in rates.items()}
        rows.append(telemetry(stop, counts))
    arrivals.count(cluster, rows)
