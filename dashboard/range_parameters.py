"""The time range from the address of a page, which has no other parameters but those it names."""

from datetime import datetime
from typing import Final

from django.utils import timezone

from controlplane.models import Cluster
from controlplane.telemetry.measures import measured_for
from dashboard.guards import PageRequest
from dashboard.lists import require_known
from dashboard.time_range import DEFAULT, RANGES, TimeRange, time_range_of

RANGE_PARAMETERS: Final = ("range", "from", "to")


def requested_range(request: PageRequest, *others: str, default: str = DEFAULT) -> TimeRange:
    """Return the time range in the address of a page, the default if it has none.

    `others`: parameters of the page beside those of the range. Raises `Invalid` for other ones.
    """
    require_known(request, {*RANGE_PARAMETERS, *others})
    now = timezone.now()
    return time_range_of(request.GET, now, fitting_name(request.cluster, now, default))


def fitting_name(cluster: Cluster | None, now: datetime, default: str) -> str:
    """Return the shortest range with all data of a young cluster, at most the default one."""
    if cluster is None:
        return default
    needed = measured_for(cluster.pk, now, RANGES[default])
    return next(name for name, length in RANGES.items() if length >= needed)
