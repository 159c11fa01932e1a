"""Time until a changed result is in the table of a sink, and after a kill of the process of sinks.

    python -m benchmarks.results.sink_delay [--batches 60] [--kills 3]

A batch of 40 records changes windows twice a second; the process of sinks writes every change to a
table of PostgreSQL. The time is from the commit of the batch until a reader sees its last change.
Then the process is killed and started again at once: the time is until the next row.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import psycopg

from benchmarks.control_plane import START_S, fresh_weir
from controlplane.wire.network.destinations import LIST, SETTING
from tests.support.postgres import running_postgres

PERIOD_S = 0.5


def parse_options(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=60)
    parser.add_argument("--kills", type=int, default=3)
    return parser.parse_args(words)


def main() -> None:
    options = parse_options()
    with fresh_weir() as folder, running_postgres() as url, tempfile.TemporaryFile() as log:
        meters = with_sink(url)
        environment = os.environ | {SETTING: os.environ[LIST], "WEIR_DATA": str(folder)}

        def start() -> "subprocess.Popen[bytes]":
            words = [sys.executable, "-m", "workers.sinks"]
            return subprocess.Popen(words, env=environment, stdout=log, stderr=log)

        process = start()
        try:
            with psycopg.connect(url, autocommit=True) as reader:
                seconds_to_row(meters, reader)
                times = [seconds_to_row(meters, reader) for _ in range(options.batches)]
                p50, p95 = np.percentile(times, [50, 95]) * 1000
                print(f"commit of a batch to visible row: p50 {p50:,.0f} ms, p95 {p95:,.0f} ms")
                after = []
                for _ in range(options.kills):
                    process.kill()
                    process.wait()
                    process = start()
                    after.append(seconds_to_row(meters, reader))
        finally:
            process.kill()
    print(f"kill to next row: {', '.join(f'{seconds:.1f}' for seconds in after)} s")


def with_sink(url: str) -> Any:
    """Return a query whose changes a sink writes to a table of a database."""
    from controlplane.sinks import service  # noqa: PLC0415 - after the set-up of Django
    from tests.support.cluster import actor, small_cluster  # noqa: PLC0415
    from tests.support.sinks import Meters  # noqa: PLC0415

    parts: dict[str, Any] = psycopg.conninfo.conninfo_to_dict(url)
    os.environ[LIST] += f" unix://{parts['host']}"
    operator = actor("operator")
    meters = Meters.submitted(operator, small_cluster(operator), seed=1)
    table = {"host": parts["host"], "user": parts["user"], "database": parts["dbname"],
             "tls": "disable", "table": "readings"}  # fmt: skip
    spec = service.SinkSpec("table", "postgres", table, mode="every_change", start="oldest")
    service.add(actor("admin"), meters.query, spec)
    return meters


def seconds_to_row(meters: Any, reader: Any) -> float:
    """Write a batch; return after which time its last change is in the table."""
    from controlplane.results.windows import newest_seq  # noqa: PLC0415

    time.sleep(PERIOD_S)
    meters.records.clear()
    started = time.monotonic()
    meters.next()
    committed, wanted = time.monotonic(), newest_seq(meters.query.cluster.slug)
    while time.monotonic() < started + START_S:
        try:
            row = reader.execute("SELECT max(seq) FROM readings").fetchone()
        except psycopg.errors.UndefinedTable:
            row = None
        if row and row[0] is not None and row[0] >= wanted:
            return time.monotonic() - committed
        time.sleep(0.005)
    raise TimeoutError(f"no row within {START_S:g} s")


if __name__ == "__main__":
    main()
