"""The pages at their size: 64 nodes and 500 streams live, and 100,000 queries.

    python -m benchmarks.pages.figures [--only live sockets server open] [--seconds 30]
        [--queries 100000] [--streams 10000] [--sockets 200] [--samples 3600] [--minutes 60]

All parts but `server` run the web process and the relay of `make run` on a fresh data directory. A
telemetry row of all nodes and streams is appended to Redis every second, as the data plane does;
the relay sends its sample over the channel layer to the browser. The part `server` requests every
page in this process, on a cluster with many queries. The part `open` leaves a page open for an hour
of real time, and is run only if it is named. Each figure is printed beside the value that it should
reach; the load of the machine is printed at the start.
"""

import argparse
import os
from collections.abc import Sequence
from typing import Final

from benchmarks.control_plane import fresh_weir
from benchmarks.pages.report import Figure, table

PARTS: Final = ("live", "sockets", "server")
# It takes an hour: it is run only if it is named.
OPEN: Final = "open"


def main() -> None:
    options = parse_options()
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
    figures: list[Figure] = []
    if set(options.only) - {"server"}:
        figures += _live_figures(options)
    if "server" in options.only:
        figures += _server_figures(options)
    print(f"\n{table(figures)}")


def _live_figures(options: argparse.Namespace) -> list[Figure]:
    with fresh_weir() as data:
        from benchmarks.pages.live import measure_live  # noqa: PLC0415 - needs Django

        return measure_live(data, options)


def _server_figures(options: argparse.Namespace) -> list[Figure]:
    with fresh_weir():
        from benchmarks.pages.server import measure_server  # noqa: PLC0415 - needs Django

        return measure_server(options.queries, options.streams)


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=(*PARTS, OPEN), default=list(PARTS))
    parser.add_argument("--seconds", type=int, default=30, help="of watched live charts")
    parser.add_argument("--queries", type=int, default=100_000)
    parser.add_argument("--streams", type=int, default=10_000)
    parser.add_argument("--sockets", type=int, default=200)
    parser.add_argument("--samples", type=int, default=3600, help="of the hour that is played")
    parser.add_argument("--minutes", type=int, default=60, help="of the page that stays open")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
