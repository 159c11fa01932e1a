"""The change feed of a query as Server-Sent Events.

The view is a plain one, in a thread of the pool; what it returns is sent by the event loop. Rows
are read in threads of their own, so that many followers take nothing from the requests.
"""

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

from channels.db import database_sync_to_async
from django.core.serializers.json import DjangoJSONEncoder
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from ninja import Router, Schema

from controlplane.access.logins.connection_access import access_of_request, while_authorized
from controlplane.api.common.lists import CURSOR, with_parameters
from controlplane.api.common.security import caller, cluster_of
from controlplane.catalog.queries import query_by_name
from controlplane.errors import Busy, Invalid
from controlplane.models import Cluster, Query
from controlplane.results.feed import FeedEvent, FeedPlace, event_row, feed_events, feed_start

router = Router(tags=["queries"])
# Connections of one process.
MAX_FEEDS: Final = 64
# A connection ends after this time, and clients reconnect; it ends earlier without access.
LONGEST_S: Final = 1_800.0
HEARTBEAT_S: Final = 10.0
# Changes are read so often (s); faster ones are sent together.
PAUSE_S: Final = 0.2
_THREADS: Final = ThreadPoolExecutor(2, thread_name_prefix="feed")
# By user, of whom none has more than half of them.
_OPEN: Counter[str] = Counter()
_read_events: Final = database_sync_to_async(feed_events, thread_sensitive=False, executor=_THREADS)


class FeedPageOut(Schema):
    """The events until now; after: the position of the next request.

    Each event has event (its kind), id, and the values of its window.
    """

    events: list[dict[str, Any]]
    after: str


# The body is a stream of events; Ninja would document JSON.
_STREAM: Final = with_parameters(
    {
        "only": {"type": "string", "enum": ["", "final"]},
        "after": CURSOR,
        "once": {"type": "boolean"},
    }
) | {
    "responses": {
        200: {
            "content": {
                "text/event-stream": {"schema": {"type": "string"}},
                "application/json": {"schema": FeedPageOut.json_schema()},
            }
        }
    }
}


@router.get("/{slug}/queries/{name}/feed", openapi_extra=_STREAM)
def follow_query(request: HttpRequest, slug: str, name: str) -> Any:
    """Follow a query's windows as Server-Sent Events.

    Events are changed, final and incomplete (data: a window as in results), and ended. Query
    parameter only=final leaves out what is not final. Last-Event-ID, or the query parameter after,
    goes on behind an event. With once=true the response is JSON: the events until now, and `after`
    for the next request.
    """
    cluster = cluster_of(request)
    query = query_by_name(cluster, name)
    only = request.GET.get("only", "")
    if only not in ("", "final"):
        raise Invalid({"only": ["must be final, or left out"]})
    once = request.GET.get("once", "false")
    if once not in ("true", "false"):
        raise Invalid({"once": ["must be true or false"]})
    reader = caller(request).name
    if once == "false" and MAX_FEEDS - _OPEN.total() <= _OPEN[reader]:
        text = f"{_OPEN[reader]} feeds of you are open in this process, of {MAX_FEEDS} in all"
        raise Busy("too_many_feeds", text, 10)
    after = request.headers.get("Last-Event-ID", "") or request.GET.get("after", "")
    place = FeedPlace.read(after) if after else feed_start(cluster, query)
    if once == "true":
        return _page(cluster, query, place, is_final_only=only == "final")
    follower = FeedFollower(reader, cluster, query, place, is_final_only=only == "final")
    lines = while_authorized(access_of_request(request, cluster), follower.lines())
    response = StreamingHttpResponse(lines, content_type="text/event-stream")
    # A proxy that gathers the answer would hold it back for ever.
    response["X-Accel-Buffering"] = "no"
    return response


def _page(cluster: Cluster, query: Query, place: FeedPlace, *, is_final_only: bool) -> HttpResponse:
    """Return the events after a position as JSON, without waiting for more."""
    events, after = feed_events(cluster, query, place, is_final_only=is_final_only)
    rows = [{"event": event.kind, "id": str(event.place), **event_row(event)} for event in events]
    text = json.dumps({"events": rows, "after": str(after)}, cls=DjangoJSONEncoder, allow_nan=False)
    return HttpResponse(text, content_type="application/json")


@dataclass
class FeedFollower:
    """A connection that reads events from the feed and sends them."""

    reader: str
    cluster: Cluster
    query: Query
    place: FeedPlace
    is_final_only: bool
    _until: float = field(default_factory=lambda: time.monotonic() + LONGEST_S)

    async def lines(self) -> AsyncGenerator[str, None]:
        """Yield the lines of the events until the query has ended or the time limit is reached.

        Nothing is read ahead: a follower that does not take its events makes no memory grow here.
        """
        _OPEN[self.reader] += 1
        heard = time.monotonic()
        try:
            yield "retry: 2000\n\n"
            while time.monotonic() < self._until:
                events = await self._events()
                for event in events:
                    yield written(event)
                if events and events[-1].kind == "ended":
                    return
                if events:
                    heard = time.monotonic()
                elif time.monotonic() - heard > HEARTBEAT_S:
                    heard = time.monotonic()
                    yield ": waiting\n\n"
                await asyncio.sleep(PAUSE_S)
        finally:
            _OPEN[self.reader] -= 1

    async def _events(self) -> list[FeedEvent]:
        events: list[FeedEvent] = []
        try:
            events, self.place = await _read_events(
                self.cluster, self.query, self.place, is_final_only=self.is_final_only
            )
        except DatabaseError:
            # Nothing is sent until the database returns.
            await asyncio.sleep(1)
        return events


def written(event: FeedEvent) -> str:
    """Return an event as the lines of Server-Sent Events; JSON has no line breaks."""
    data = json.dumps(event_row(event), cls=DjangoJSONEncoder, allow_nan=False)
    return f"id: {event.place}\nevent: {event.kind}\ndata: {data}\n\n"
