"""The API at its size: lists, a bulk of ten thousand queries, fifty clients at once.

    python -m benchmarks.api_speed [--queries 100000] [--streams 10000] [--proposals 1000]
                                   [--bulk 10000] [--clients 50] [--seconds 20] [--postgres]

On a fresh SQLite database, or with --postgres on a PostgreSQL server of its own (or with
DATABASE_URL on an empty database there). Lists and the bulk are measured in this process, from
the request to the answer's bytes; the clients speak HTTP to uvicorn, started as `make run` does,
each with its next request as soon as the last one is answered.
"""

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from benchmarks.api_filling import STREAMS_PER_QUERY, fill
from benchmarks.control_plane import private_redis, until
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
TRIES = 40
# Between one client's coming and the next one's, and for caches once all are there.
APART_S = 0.02
WARM_S = 2.0


def main() -> None:
    arguments = _arguments()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="weir-bench-"))
        os.environ |= {
            "WEIR_DATA": folder,
            "REDIS_URL": stack.enter_context(private_redis(Path(folder))),
            "DJANGO_SETTINGS_MODULE": "controlplane.settings",
            "WEIR_LOG_LEVEL": "ERROR",
        }
        if arguments.postgres:
            from tests.support.postgres import running_postgres  # noqa: PLC0415

            os.environ["DATABASE_URL"] = stack.enter_context(running_postgres())
        _run(arguments, Path(folder))


def _run(arguments: argparse.Namespace, data: Path) -> None:
    import django  # noqa: PLC0415 - needs the environment

    django.setup()
    from django.core.management import call_command  # noqa: PLC0415
    from django.db import connection  # noqa: PLC0415

    from controlplane.services import tokens  # noqa: PLC0415

    call_command("migrate_all", verbosity=0)
    begun = time.perf_counter()
    user, cluster = fill(arguments.queries, arguments.streams, arguments.proposals)
    if connection.vendor == "postgresql":
        # As autovacuum does in a server that lives longer than a minute.
        connection.cursor().execute("VACUUM ANALYZE")
    print(
        f"{connection.vendor}: {arguments.queries:,} queries on {STREAMS_PER_QUERY} of "
        f"{arguments.streams:,} streams, {arguments.proposals:,} proposals, "
        f"in {time.perf_counter() - begun:.0f} s"
    )
    token = tokens.create(user, "bench")
    # What the web process does when it starts: all endpoints loaded, nothing of it collected.
    import controlplane.asgi  # noqa: F401, PLC0415

    _measure_lists(token)
    _measure_clients(token, arguments, data)
    _measure_bulk(token, cluster, arguments.bulk)


def _client(token: str) -> Any:
    from django.conf import settings  # noqa: PLC0415
    from django.test import Client  # noqa: PLC0415

    settings.ALLOWED_HOSTS = ["testserver"]
    return Client(headers={"authorization": f"Bearer {token}"})


def _measure_lists(token: str) -> None:
    client = _client(token)
    for limit in (50, 200):
        print(f"lists of {limit} rows: SQL queries, median, p95, worst of {TRIES} pages")
        for name, path in LISTS.items():
            asked = [_sql(client, f"{path}&limit={some}") for some in (5, limit)]
            taken = list(islice(_walk(client, path, limit), TRIES))
            assert asked[1] <= asked[0], f"{name}: {asked[0]} queries for 5 rows, {asked[1]} else"
            print(f"  {name:22} {asked[1]:2}  {_told(taken)}")


def _walk(client: Any, path: str, limit: int) -> Iterator[float]:
    """Yield how long each page took, from the first to the last and again."""
    cursor = ""
    while True:
        begun = time.perf_counter()
        answer = client.get(f"{path}&limit={limit}" + (f"&cursor={cursor}" if cursor else ""))
        assert len(answer.content) > 0
        yield time.perf_counter() - begun
        assert answer.status_code == 200, answer.content[:500]
        body = answer.json()
        cursor = (body.get("next") or "") if isinstance(body, dict) else ""


def _sql(client: Any, path: str) -> int:
    from django.db import connection  # noqa: PLC0415
    from django.test.utils import CaptureQueriesContext  # noqa: PLC0415

    client.get(path)
    with CaptureQueriesContext(connection) as captured:
        client.get(path)
    return len(captured)


def _measure_bulk(token: str, cluster: Any, count: int) -> None:
    client = _client(token)
    half = cluster.streams.count() // 2
    for kind, body, runs in (
        ("of numbers", _plain, 3),
        ("with one of a hundred texts", lambda n, i, half: _texted(n, i % 100, half), 3),
        ("each with a text of its own", _texted, 1),
    ):
        taken = []
        for run in range(runs):
            rows = [body(f"{kind.split()[0]}-{run}-{i}", i, half) for i in range(count)]
            sent = json.dumps({"queries": rows})
            begun = time.perf_counter()
            answer = client.post(f"{CLUSTER}/queries/bulk", sent, content_type="application/json")
            taken.append(time.perf_counter() - begun)
            assert answer.status_code == 201, answer.content[:500]
        print(f"bulk of {count:,} queries {kind} ({len(sent) / 1e6:.1f} MB): {_told(taken)}")
    faulty = [_plain(f"faulty-{i}", i, half) | {"streams": ["nowhere"]} for i in range(count)]
    sent = json.dumps({"queries": faulty})
    begun = time.perf_counter()
    answer = client.post(f"{CLUSTER}/queries/bulk", sent, content_type="application/json")
    taken = [time.perf_counter() - begun]
    assert answer.status_code == 422
    assert len(answer.json()["rows"]) == count
    print(f"bulk of {count:,} queries refused row by row: {_told(taken)}")


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


def _measure_clients(token: str, arguments: argparse.Namespace, data: Path) -> None:
    with _web(data) as port:
        found = asyncio.run(_ask(port, token, arguments.clients, arguments.seconds))
    taken = [seconds for seconds, _ in found]
    errors = sum(1 for _, status in found if status != 200)
    rate = len(found) / arguments.seconds
    print(
        f"{arguments.clients} clients for {arguments.seconds} s: {errors} errors, "
        f"{rate:.0f} requests/s, {_told(taken)}"
    )


async def _ask(port: int, token: str, clients: int, seconds: float) -> list[tuple[float, int]]:
    """Let every client ask one thing after the other; return how long each took, and its status.

    Each has a connection of its own, and next to no code: what is measured is the server. They
    come one after the other, as people do, and what is asked while they come does not count.
    """
    paths = [f"{path}&limit=20" for path in LISTS.values()]
    paths += [f"{CLUSTER}", f"{CLUSTER}/queries/query-000123", f"{ROOT}/me"]
    found: list[tuple[float, int]] = []
    counted = time.perf_counter() + APART_S * clients + WARM_S
    end = counted + seconds

    async def ask(first: int) -> None:
        await asyncio.sleep(APART_S * first)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for path in islice(cycle(paths), first % len(paths), None):
            begun = time.perf_counter()
            if begun > end:
                break
            try:
                status = await _answer(reader, writer, path, token)
            except (OSError, EOFError):
                status = 0
            if begun > counted:
                found.append((time.perf_counter() - begun, status))
            if not status:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.close()

    await asyncio.gather(*(ask(number) for number in range(clients)))
    return found


async def _answer(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str, token: str
) -> int:
    """Send a GET and read its answer to the end; return its status."""
    asked = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n\r\n"
    writer.write(asked.encode())
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    length = head.partition("content-length: ")[2].partition("\r\n")[0]
    await reader.readexactly(int(length))
    return int(head.split(" ", 2)[1])


@contextmanager
def _web(data: Path) -> Iterator[int]:
    """Start the web process as `make run` does; yield its port once it answers."""
    import httpx  # noqa: PLC0415

    from controlplane.runtime.children import web_command  # noqa: PLC0415

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    url = f"http://127.0.0.1:{port}"
    with (data / "web.log").open("wb") as log:
        process = subprocess.Popen(web_command("127.0.0.1", port), stdout=log, stderr=log)
        try:
            until(lambda: _answers(httpx, url))
            yield port
        except BaseException:
            print((data / "web.log").read_text()[-4000:], file=sys.stderr)
            raise
        finally:
            process.terminate()
            process.wait(timeout=30)


def _answers(httpx: Any, url: str) -> bool:
    try:
        return bool(httpx.get(f"{url}/healthz").is_success)
    except httpx.TransportError:
        return False


def _told(taken: Sequence[float]) -> str:
    ordered = sorted(taken)
    p95 = ordered[min(len(ordered) - 1, round(len(ordered) * 0.95))]
    return " ".join(
        f"{name} {1000 * value:7.1f} ms"
        for name, value in (
            ("median", statistics.median(ordered)),
            ("p95", p95),
            ("worst", ordered[-1]),
        )
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=100_000)
    parser.add_argument("--streams", type=int, default=10_000)
    parser.add_argument("--proposals", type=int, default=1000)
    parser.add_argument("--bulk", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--postgres", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
