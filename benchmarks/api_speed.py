"""The API at its size: lists, a bulk of ten thousand queries, fifty clients at once.

    python -m benchmarks.api_speed [--queries 100000] [--streams 10000] [--proposals 1000]
                                   [--pages 40] [--bulk 10000] [--clients 50] [--seconds 20]
                                   [--postgres]

On a fresh SQLite database, or with --postgres on a PostgreSQL server of its own (or with
DATABASE_URL on an empty database there). All requests go over HTTP to the web process with the
command of `make run`, from the request to the last byte of the answer; each of the clients sends
its next request as soon as the last one is answered. No Celery worker runs beside it.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Iterator, Sequence
from itertools import cycle, islice
from typing import Any
from urllib.parse import urlsplit

from benchmarks.api_filling import STREAMS_PER_QUERY, fill
from benchmarks.control_plane import api_client, figures, fresh_weir, running_services
from tests.support.texts import SUMMARY_JSON

ROOT = "/api/v1"
CLUSTER = f"{ROOT}/clusters/bench"
# What is measured of each list: by its first page, then from page to page at the cursor.
LISTS = {
    "clusters": f"{ROOT}/clusters?q=b",
    "streams": f"{CLUSTER}/streams?",
    "streams by rate": f"{CLUSTER}/streams?order=-rate",
    "streams by text": f"{CLUSTER}/streams?q=s12",
    "queries": f"{CLUSTER}/queries?",
    "queries that live": f"{CLUSTER}/queries?state=live",
    "queries by state": f"{CLUSTER}/queries?state=ended",
    "queries by name": f"{CLUSTER}/queries?order=name",
    "queries by text": f"{CLUSTER}/queries?q=query-0991",
    "queries of a node": f"{CLUSTER}/queries?node=3",
    "queries of a stream": f"{CLUSTER}/queries?stream=s77",
    "proposals": f"{CLUSTER}/proposals?",
    "proposals by state": f"{CLUSTER}/proposals?state=ready",
    "versions": f"{CLUSTER}/versions?",
    "audit": f"{ROOT}/audit?",
    "audit of a cluster": f"{ROOT}/audit?cluster=bench&q=user-7",
}
# Between one client's coming and the next one's, and for caches once all are there.
APART_S = 0.02
WARM_S = 2.0


def main() -> None:
    options = parse_options()
    with fresh_weir(postgres=options.postgres) as data:
        from django.db import connection  # noqa: PLC0415

        started = time.perf_counter()
        user, cluster = fill(options.queries, options.streams, options.proposals)
        if connection.vendor == "postgresql":
            # As autovacuum does in a server that lives longer than a minute.
            connection.cursor().execute("VACUUM ANALYZE")
        print(
            f"{connection.vendor}: {options.queries:,} queries on {STREAMS_PER_QUERY} of "
            f"{options.streams:,} streams, {options.proposals:,} proposals, "
            f"in {time.perf_counter() - started:.0f} s"
        )
        with running_services(data, ["web"]) as url, api_client(url, user) as client:
            _measure_lists(client, options.pages)
            token = client.headers["authorization"].removeprefix("Bearer ")
            _measure_clients(urlsplit(url).port or 0, token, options)
            _measure_bulk(client, cluster, options.bulk)


def _measure_lists(client: Any, pages: int) -> None:
    for limit in (50, 200):
        print(f"lists of {limit} rows: SQL queries, then {pages} pages")
        for name, path in LISTS.items():
            few, many = (_count_sql(client, f"{path}&limit={size}") for size in (5, limit))
            taken = list(islice(_walk(client, path, limit), pages))
            assert many <= few, f"{name}: {few} SQL queries for 5 rows, {many} for {limit}"
            print(f"  {name:22} {many:2}  {figures(taken)}")


def _walk(client: Any, path: str, limit: int) -> Iterator[float]:
    """Yield how long each page took, from the first to the last and again."""
    cursor = ""
    while True:
        started = time.perf_counter()
        answer = client.get(f"{path}&limit={limit}" + (f"&cursor={cursor}" if cursor else ""))
        yield time.perf_counter() - started
        assert answer.status_code == 200, answer.content[:500]
        body = answer.json()
        cursor = (body.get("next") or "") if isinstance(body, dict) else ""


def _count_sql(client: Any, path: str) -> int:
    """Return how many SQL queries the same request executes in this process."""
    from django.conf import settings  # noqa: PLC0415
    from django.db import connection  # noqa: PLC0415
    from django.test import Client  # noqa: PLC0415
    from django.test.utils import CaptureQueriesContext  # noqa: PLC0415

    settings.ALLOWED_HOSTS = ["testserver"]
    here = Client(headers={"authorization": client.headers["authorization"]})
    here.get(path)
    with CaptureQueriesContext(connection) as captured:
        answer = here.get(path)
    assert answer.status_code == 200, answer.content[:500]
    return len(captured)


def _measure_bulk(client: Any, cluster: Any, count: int) -> None:
    half = cluster.streams.count() // 2
    for kind, body, runs in (
        ("of numbers", _plain, 3),
        ("with one of a hundred texts", lambda n, i, half: _texted(n, i % 100, half), 3),
        ("each with a text of its own", _texted, 3),
    ):
        taken, size = [], 0
        for run in range(runs):
            rows = [body(f"{kind.split()[0]}-{run}-{i}", i, half) for i in range(count)]
            seconds, size, _ = _post_bulk(client, rows, 201)
            taken.append(seconds)
        print(f"bulk of {count:,} queries {kind} ({size / 1e6:.1f} MB): {figures(taken)}")
    faulty = [_plain(f"faulty-{i}", i, half) | {"streams": ["nowhere"]} for i in range(count)]
    refused = [_post_bulk(client, faulty, 422) for _ in range(3)]
    assert all(len(answer["rows"]) == count for _, _, answer in refused)
    taken = [seconds for seconds, _, _ in refused]
    print(f"bulk of {count:,} queries refused row by row: {figures(taken)}")


def _post_bulk(client: Any, rows: Sequence[Any], status: int) -> tuple[float, int, Any]:
    """Post queries; return the seconds until the answer is read, the bytes sent and the answer."""
    sent = json.dumps({"queries": rows}).encode()
    started = time.perf_counter()
    answer = client.post(
        f"{CLUSTER}/queries/bulk", content=sent, headers={"content-type": "application/json"}
    )
    taken = time.perf_counter() - started
    assert answer.status_code == status, answer.content[:500]
    return taken, len(sent), answer.json()


def _plain(name: str, number: int, half: int) -> dict[str, Any]:
    """Return a query of a stream of the first half of them and one of the second."""
    streams = [f"s{number % half}", f"s{number % (half - 1) + half}"]
    return {"name": name, "streams": streams, "text": SUMMARY_JSON}


def _texted(name: str, number: int, half: int) -> dict[str, Any]:
    text = {
        "where": f"speed > {number} and car <> 7",
        "key": ["car"],
        "aggregates": {"n": "count(*)", "fast": "quantile(speed, 0.95)"},
        "window_s": 60.0,
    }
    return {"name": name, "streams": [f"s{number % half}"], "text": text}


def _measure_clients(port: int, token: str, options: argparse.Namespace) -> None:
    answers = asyncio.run(_ask(port, token, options.clients, options.seconds))
    taken = [seconds for seconds, _ in answers]
    errors = sum(1 for _, status in answers if status != 200)
    rate = len(answers) / options.seconds
    print(
        f"{options.clients} clients for {options.seconds} s: {errors} errors, "
        f"{rate:.0f} requests/s, {figures(taken)}"
    )


async def _ask(port: int, token: str, clients: int, seconds: float) -> list[tuple[float, int]]:
    """Let every client ask one thing after the other; return how long each took, and its status.

    Each has a connection of its own, and next to no code: what is measured is the server. They
    come one after the other, as people do, and what is request while they come does not count.
    """
    paths = [f"{path}&limit=20" for path in LISTS.values()]
    paths += [f"{CLUSTER}", f"{CLUSTER}/queries/query-000001", f"{ROOT}/me"]
    answers: list[tuple[float, int]] = []
    counted = time.perf_counter() + APART_S * clients + WARM_S
    end = counted + seconds

    async def ask(first: int) -> None:
        await asyncio.sleep(APART_S * first)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for path in islice(cycle(paths), first % len(paths), None):
            started = time.perf_counter()
            if started > end:
                break
            try:
                status = await _answer(reader, writer, path, token)
            except (OSError, EOFError):
                status = 0
            if started > counted:
                answers.append((time.perf_counter() - started, status))
            if not status:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.close()

    await asyncio.gather(*(ask(number) for number in range(clients)))
    return answers


async def _answer(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str, token: str
) -> int:
    """Send a GET and read its answer to the end; return its status."""
    request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n\r\n"
    writer.write(request.encode())
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    length = head.partition("content-length: ")[2].partition("\r\n")[0]
    await reader.readexactly(int(length))
    return int(head.split(" ", 2)[1])


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=100_000)
    parser.add_argument("--streams", type=int, default=10_000)
    parser.add_argument("--proposals", type=int, default=1000)
    parser.add_argument("--pages", type=int, default=40, help="of each list")
    parser.add_argument("--bulk", type=int, default=10_000, help="queries of a bulk")
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--postgres", action="store_true")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
