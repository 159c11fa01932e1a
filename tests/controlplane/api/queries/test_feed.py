"""The change feed through the application as uvicorn calls it."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from django.utils import timezone

from controlplane.access import tokens
from controlplane.access.roles import Actor
from controlplane.api.queries import feed
from controlplane.cli.main import main
from controlplane.connections import redis_client
from controlplane.models import Cluster, Query
from controlplane.queries.spec import QuerySpec
from controlplane.results import feed as query_feed
from controlplane.results.feed import FeedPlace, feed_events, feed_start
from controlplane.results.finality import update_finality
from controlplane.topology import queries
from controlplane.wire.query_text import QueryText
from controlplane.wire.results import watermarks
from tests.support.windows import write_windows

pytestmark = pytest.mark.django_db(transaction=True)
PATH = "/api/v1/clusters/sf/queries/q/feed"
MINUTE = 60_000
Event = dict[str, str]


@pytest.fixture(autouse=True)
def forgetful() -> Iterator[None]:
    yield
    assert not feed._OPEN.total()


@pytest.fixture
def query(operator: Actor, sf: Cluster) -> Query:
    text = QueryText({"n": "count(*)"}, 60.0, lateness_s=0.0, key=("stream",))
    return queries.submit(operator, sf, QuerySpec("q", ("s0",), text))


@pytest.fixture
def token(operator: Actor, query: Query) -> str:
    return tokens.create(operator.user, "feed")  # type: ignore[arg-type]


def write(query: Query, batch: int, counts: dict[int, int]) -> None:
    """Write windows by minute."""
    s0 = query.streams.get().pk
    rows = [{"pane": at * MINUTE, "stream": s0, "k0": s0, "s0": n} for at, n in counts.items()]
    write_windows(query, batch, rows)


def finish(query: Query, batch: int, until: int) -> None:
    """Let the windows before a minute become final."""
    newest = {query.streams.get().pk: until * MINUTE}
    watermarks.commit(redis_client(), "sf", batch, batch, 0, newest)
    update_finality(timezone.now())


@asynccontextmanager
async def followed(token: str, after: str = "", only: str = "") -> AsyncIterator[Any]:
    """Follow, and go away at the end."""
    from controlplane.processes.asgi import application  # noqa: PLC0415 - reads the settings

    headers = [(b"host", b"localhost"), (b"authorization", f"Bearer {token}".encode())]
    if after:
        headers.append((b"last-event-id", after.encode()))
    scope = {
        "type": "http", "method": "GET", "path": PATH, "http_version": "1.1", "headers": headers,
        "query_string": f"only={only}".encode() if only else b"",
    }  # fmt: skip
    asked: Any = ApplicationCommunicator(application, scope)  # type: ignore[no-untyped-call]
    await asked.send_input({"type": "http.request", "body": b""})
    yield asked
    await asked.send_input({"type": "http.disconnect"})
    await asked.wait(5)


async def begun(asked: Any) -> None:
    begin = await asked.receive_output(10)
    assert begin["status"] == 200
    assert dict(begin["headers"])[b"Content-Type"] == b"text/event-stream"
    assert (await asked.receive_output(10))["body"] == b"retry: 2000\n\n"


async def event(asked: Any) -> Event:
    """Return the next event; lines that are none are passed over."""
    while True:
        body = (await asked.receive_output(20))["body"].decode()
        if body.startswith("id: "):
            return dict(line.split(": ", 1) for line in body.strip().splitlines())


async def test_changes_and_final_windows_come_as_events(query: Query, token: str) -> None:
    """And after a connection was lost, what became final meanwhile."""
    async with followed(token) as asked:
        await begun(asked)
        await asyncio.sleep(0.3)
        await sync_to_async(write)(query, 1, {0: 3, 1: 5})
        first, second = await event(asked), await event(asked)
        assert [one["event"] for one in (first, second)] == ["changed", "changed"]
        data = json.loads(second["data"])
        assert (data["window_start"], data["key"]) == ("1970-01-01T00:01:00Z", {"stream": "s0"})
        assert (data["values"], data["state"], data["batch"]) == ({"n": 5}, "open", 1)
        await sync_to_async(finish)(query, 2, 1)
        final = await event(asked)
        assert (final["event"], json.loads(final["data"])["values"]) == ("final", {"n": 3})
    await sync_to_async(write)(query, 3, {2: 7})
    await sync_to_async(finish)(query, 4, 3)
    async with followed(token, final["id"], "final") as asked:
        await begun(asked)
        found = [json.loads((await event(asked))["data"]) for _ in range(2)]
        assert [(one["values"]["n"], one["state"]) for one in found] == [(5, "final"), (7, "final")]


async def test_an_ended_query_ends_its_feed(query: Query, token: str) -> None:
    await sync_to_async(write)(query, 1, {0: 3})
    async with followed(token) as asked:
        await begun(asked)
        await sync_to_async(Query.objects.filter(pk=query.pk).update)(
            state="ended", ended_at=timezone.now() - timedelta(hours=1)
        )
        await sync_to_async(update_finality)(timezone.now())
        events = [(await event(asked))["event"] for _ in range(2)]
        assert events == ["incomplete", "ended"]
        assert not (await asked.receive_output(5)).get("more_body")


async def test_what_is_no_place_and_who_is_nobody_is_refused(query: Query, token: str) -> None:
    for given, status in (
        ((token, "nonsense"), 422),
        (("weir_x",), 401),
        ((token, "", "all"), 422),
    ):
        async with followed(*given) as asked:
            assert (await asked.receive_output(10))["status"] == status
            await asked.receive_output(10)


def test_no_follower_misses_a_change(query: Query) -> None:
    """However long nobody followed: a window that changed often is an event once."""
    cluster = query.cluster
    place = feed_start(cluster, query)
    write(query, 1, {0: 1})
    (changed,), after = feed_events(cluster, query, place)
    assert changed.kind == "changed"
    assert feed_events(cluster, query, after) == ([], after)
    write(query, 2, {0: 2, 1: 2})
    write(query, 3, {1: 5})
    finish(query, 3, 1)
    events, later = feed_events(cluster, query, after)
    assert [(one.kind, one.window.values) for one in events if one.window] == [
        ("changed", {"n": 5}), ("final", {"n": 2}),
    ]  # fmt: skip
    redis_client().flushdb()
    write(query, 4, {1: 5, 2: 1})
    events, last = feed_events(cluster, query, later)
    assert [one.window.values for one in events if one.window] == [{"n": 1}], (
        "the other is as before"
    )
    assert feed_events(cluster, query, FeedPlace.read(str(last)))[0] == []


def test_a_long_feed_is_read_in_parts(query: Query, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_feed, "MOST", 3)
    place, seen = feed_start(query.cluster, query), []
    write(query, 1, dict.fromkeys(range(8), 1))
    while True:
        events, place = feed_events(query.cluster, query, place)
        if not events:
            break
        seen += [one.window.start.minute for one in events if one.window]
    assert seen == list(range(8))


def test_tail_prints_what_happens(
    query: Query, operator: Actor, capsys: pytest.CaptureFixture[str]
) -> None:
    """As lines of JSON, and behind an event."""
    place = feed_start(query.cluster, query)
    write(query, 1, {0: 1, 1: 2})
    finish(query, 2, 1)
    call = ["tail", "sf", "q", "--for", "0", "--after", str(place), "--as", operator.name]
    assert main([*call, "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["event"], one["values"]) for one in lines] == [
        ("changed", {"n": 2}),
        ("final", {"n": 1}),
    ]
    assert main([*call, "--final-only"]) == 0
    assert capsys.readouterr().out.split()[:4] == ["final", "1970-01-01", "00:00:00", "stream=s0"]
