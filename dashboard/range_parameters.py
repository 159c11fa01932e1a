"""The time range from the address of a page, which has no other parameters but those it names."""

from typing import Final

from django.utils import timezone

from dashboard.guards import PageRequest
from dashboard.lists import require_known
from dashboard.time_range import DEFAULT, TimeRange, time_range_of

RANGE_PARAMETERS: Final = ("range", "from", "to")


def requested_range(request: PageRequest, *others: str, default: str = DEFAULT) -> TimeRange:
    """Return the time range in the address of a page, the default if it has none.

    `others`: parameters of the page beside those of the range. Raises `Invalid` for other ones.
    """
    require_known(request, {*RANGE_PARAMETERS, *others})
    return time_range_of(request.GET, timezone.now(), default)
