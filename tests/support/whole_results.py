"""All windows of a query that are in Redis, for tests that look at whole results."""

from collections.abc import Iterator
from dataclasses import replace

import redis

from controlplane.wire.aggregates.finalize import WindowRow
from controlplane.wire.query import Computation
from controlplane.wire.results.read import Range, WindowsPage, read_page


def read_windows(
    client: "redis.Redis", cluster: str, query: int, computation: Computation
) -> list[WindowRow]:
    """Return all windows of a query that are in Redis, oldest first."""
    return [
        window.row
        for page in pages(client, cluster, query, computation, Range(newest_first=False))
        for window in page.windows
    ]


def pages(
    client: "redis.Redis", cluster: str, query: int, computation: Computation, wanted: Range
) -> Iterator[WindowsPage]:
    """Yield one page after the other, up to the end of the range."""
    while True:
        page = read_page(client, cluster, query, computation, wanted)
        yield page
        if not page.next:
            return
        wanted = replace(wanted, after=page.next)
