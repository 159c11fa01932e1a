"""What was measured of split nodes after a plan."""

from collections.abc import Mapping
from datetime import datetime

from django.utils import timezone

from controlplane.catalog.split_reading import reading_of
from controlplane.models import Cluster
from controlplane.planners.admission.adapter import SPLIT_OVERLOAD
from controlplane.planners.admission.observation import read_input


def measured(cluster: Cluster, since: datetime) -> Mapping[str, float]:
    """Return the records/s that have arrived beyond the capacities of split nodes since a time.

    Nothing if their capacity is not known.
    """
    given, shares = read_input(cluster), reading_of(cluster).shares()
    if not given.capacity:
        return {}
    periods = max(1, int((timezone.now() - since).total_seconds() / given.seconds))
    loads: dict[int, float] = {}
    for stream in given.streams:
        known = [rate for rate in stream.rates[-periods:] if rate is not None]
        for split, part in shares.get(stream.id, {}).items() if known else ():
            loads[split] = loads.get(split, 0.0) + part * sum(known) / len(known)
    return {SPLIT_OVERLOAD.name: sum(max(0.0, load - given.capacity) for load in loads.values())}
