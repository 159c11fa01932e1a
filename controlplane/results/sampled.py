"""Windows with the fraction of their records that was kept, and estimates over all records."""

from collections.abc import Sequence

from controlplane.models import Query
from controlplane.results.estimates import estimates_of
from controlplane.results.kept import kept_of_windows
from controlplane.results.values import KeyedWindow
from controlplane.wire.query import Computation


def with_estimates(
    query: Query, computation: Computation | None, windows: Sequence[KeyedWindow]
) -> list[KeyedWindow]:
    """Return windows of a query with what was kept of them; one query to the database for all.

    `computation`: None if the query calls a missing function: its windows stay as they are.
    """
    if computation is None or not windows:
        return list(windows)
    kept = kept_of_windows(query, computation, (window.start.timestamp() for window in windows))
    result = []
    for window in windows:
        own = kept.get(window.start.timestamp())
        if own is not None:
            estimates = estimates_of(computation, window.values, own)
            window = window._replace(kept=own.fraction, estimates=estimates)  # noqa: PLW2901
        result.append(window)
    return result
