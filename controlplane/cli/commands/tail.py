"""weir tail: the windows of a query as they change and become final."""

import time
from argparse import Namespace
from collections.abc import Iterator
from typing import Any, Final

from controlplane.catalog.queries import query_by_name
from controlplane.cli.actors import viewed
from controlplane.cli.output import console, print_json
from controlplane.results.feed import (
    FeedEvent,
    FeedPlace,
    event_row,
    feed_events,
    feed_start,
)

_LONGEST_S: Final = 20.0


def tail_query(given: Namespace) -> None:
    """Print the events of a query's windows until it has ended, the time limit, or Ctrl-C."""
    _, cluster = viewed(given)
    query = query_by_name(cluster, given.query)
    place = FeedPlace.read(given.after) if given.after else feed_start(cluster, query)
    for event in _events(given, cluster, query, place):
        _print(given, event)


def _events(given: Namespace, cluster: Any, query: Any, place: FeedPlace) -> Iterator[FeedEvent]:
    until = None if given.seconds is None else time.monotonic() + given.seconds
    while True:
        events, place = feed_events(cluster, query, place, is_final_only=given.final_only)
        yield from events
        if events and events[-1].kind == "ended":
            return
        if until is not None and time.monotonic() >= until:
            return
        time.sleep(min(_LONGEST_S, max(0.05, given.every)))


def _print(given: Namespace, event: FeedEvent) -> None:
    if given.json:
        print_json({"event": event.kind, "id": str(event.place), **event_row(event)}, line=True)
        return
    terminal = console()
    terminal.print(f"{event.kind:<10}", end=" ", style="bold", markup=False)
    terminal.print(_sentence(event), markup=False, soft_wrap=True)


def _sentence(event: FeedEvent) -> str:
    if event.window is None:
        return {"gap": "changes were missed; final windows were not"}.get(
            event.kind, "the query has ended"
        )
    window = event.window
    key = " ".join(f"{name}={value}" for name, value in window.key.items())
    values = " ".join(f"{name}={value}" for name, value in window.values.items())
    return f"{window.start:%Y-%m-%d %H:%M:%S}  {key}  {values}"
