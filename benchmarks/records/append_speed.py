"""Appends over HTTP: the whole call POST …/records of this checkout against that of another.

    python -m benchmarks.records.append_speed [--against PATH] [--rounds 60] [--records 1 100 10000]

Each side runs a web process with the command of `make run`, with the code of its checkout, on a
database and a Redis of its own. Every round sends the same body to both, in turns who is first; a
request is timed from its first byte to the last of the answer. Prints the medians of both sides
and the median of the ratios old/new of the rounds: requests/s of new over those of old.
"""

import argparse
import io
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

PATH: Final = "/api/v1/clusters/bench/streams/orders/records"
SCHEMA: Final = {
    "columns": [
        {"name": "placed_at", "type": "timestamp(ms)", "nullable": False},
        {"name": "shop", "type": "string", "nullable": False},
        {"name": "customer", "type": "int64", "nullable": False},
        {"name": "amount", "type": "decimal(12, 2)"},
        {"name": "weight", "type": "float64"},
    ],
    "event_time": "placed_at",
}
WARM: Final = 5


def bodies(records: int) -> Iterator[tuple[str, str, bytes]]:
    """Yield (name, content type, body) of the formats."""
    import pyarrow as pa  # noqa: PLC0415

    start = time.time_ns() // 1_000_000
    rows = [
        {"placed_at": start - row, "shop": f"shop {row % 97}", "customer": row * 7919,
         "amount": f"{row % 1000}.{row % 100:02}", "weight": row / 7}
        for row in range(records)
    ]  # fmt: skip
    yield "JSON", "application/json", json.dumps({"records": rows}).encode()
    table = pa.Table.from_pylist(rows)
    table = table.set_column(3, "amount", table["amount"].cast(pa.decimal128(12, 2)))
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    yield "Arrow", "application/vnd.apache.arrow.stream", sink.getvalue()


def main() -> None:
    options = parse_options()
    if options.side:
        serve()
        return
    here = Path(__file__).resolve().parents[2]
    sides = {"new": here} | ({"old": options.against.resolve()} if options.against else {})
    with ExitStack() as stack:
        clients = {name: stack.enter_context(side(path)) for name, path in sides.items()}
        for records in options.records:
            for kind, content_type, body in bodies(records):
                taken = measure(clients, content_type, body, options.rounds)
                report(f"{records:,} records of {kind}", taken)


def measure(
    clients: dict[str, Any], content_type: str, body: bytes, rounds: int
) -> dict[str, list[float]]:
    """Return the seconds of the requests of each side; those of one round stand together."""
    taken: dict[str, list[float]] = {name: [] for name in clients}
    for number in range(WARM + rounds):
        order = list(clients) if number % 2 else list(clients)[::-1]
        for name in order:
            started = time.perf_counter()
            answer = clients[name].post(PATH, content=body, headers={"content-type": content_type})
            seconds = time.perf_counter() - started
            assert answer.status_code == 201, answer.content[:500]
            if number >= WARM:
                taken[name].append(seconds)
    return taken


def report(name: str, taken: dict[str, list[float]]) -> None:
    medians = {side: statistics.median(seconds) * 1000 for side, seconds in taken.items()}
    text = ", ".join(f"{side} {median:.1f} ms" for side, median in medians.items())
    if "old" in taken:
        ratios = [old / new for old, new in zip(taken["old"], taken["new"], strict=True)]
        text += f"; requests/s new over old {statistics.median(ratios):.2f}"
    print(f"{name}: {text} (n {len(taken['new'])})", flush=True)


@contextmanager
def side(checkout: Path) -> Iterator[Any]:
    """Start a web process with the code of a checkout, and yield its client."""
    import httpx  # noqa: PLC0415

    process = subprocess.Popen(
        [sys.executable, __file__, "--side"],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        url, token = json.loads(process.stdout.readline() or "[]")
        headers = {"authorization": f"Bearer {token}"}
        with httpx.Client(base_url=url, headers=headers, timeout=120) as client:
            yield client
    finally:
        process.stdin.close()
        process.wait()


def serve() -> None:
    """Serve a cluster with one stream until the standard input ends; print URL and token."""
    from benchmarks.control_plane import fresh_weir, running_services  # noqa: PLC0415

    with fresh_weir() as data:
        from django.contrib.auth.models import User  # noqa: PLC0415

        from controlplane.access import tokens  # noqa: PLC0415
        from controlplane.models import Cluster, Stream  # noqa: PLC0415

        user = User.objects.create_superuser("bench")
        cluster = Cluster.objects.create(slug="bench", name="bench")
        Stream.objects.create(cluster=cluster, name="orders", split=0, schema=SCHEMA)
        with running_services(data, ["web"]) as url:
            print(json.dumps([url, tokens.create(user, "bench")]), flush=True)
            sys.stdin.read()


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.records.append_speed", description=__doc__)
    parser.add_argument("--against", type=Path, metavar="PATH", help="another checkout")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--records", type=int, nargs="+", default=[1, 100, 10_000])
    parser.add_argument("--side", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
