"""One pipeline of `light_load`: reads from stdin for how many seconds records are to flow.

Runs with the code of whatever checkout PYTHONPATH names, so it imports only what all of them have.
"""

import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import psutil

from benchmarks import data_plane
from benchmarks.application import batch_durations, memory_of
from tests.support.redis_server import running_redis

QUERIES: Final = 300
NODES: Final = 4

Report = dict[str, float]


def run_side() -> None:
    """Run a pipeline; print its figures for each number of seconds that comes in, as JSON."""
    # Not every checkout declares them in the same module.
    plane: Any = data_plane
    queries = plane.small_queries(QUERIES, NODES)
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as name, \
            running_redis(Path(name)) as url, \
            data_plane.start_weir(url, Path(name) / "weir", queries, NODES) as weir:  # fmt: skip
        data_plane.lightly_loaded(weir, url, batches=10, seconds=90)
        print("ready", flush=True)
        for line in sys.stdin:
            print(json.dumps(one_turn(weir, url, float(line))), flush=True)


def one_turn(weir: Any, url: str, seconds: float) -> Report:
    """Return the figures of a pipeline into which records flow for so long."""
    pid = weir.process.pid
    seen, before = len(weir.telemetry()), processor_seconds(pid)
    rows = data_plane.lightly_loaded(weir, url, batches=10_000, seconds=seconds)[seen:]
    spent = processor_seconds(pid) - before
    durations = batch_durations(weir.client, data_plane.CLUSTER)[-len(rows) :]
    return {
        "batches": len(rows),
        "micro_batch_ms": statistics.median(durations),
        "append_to_result_ms": data_plane.latencies(rows)["p50"],
        "cpu_ms": round(1000 * spent / len(rows)),
        "pss_mb": memory_of(pid)["pss"],
    }


def processor_seconds(pid: int) -> float:
    """Return the processor time that a process and those under it have taken."""
    root = psutil.Process(pid)
    total = 0.0
    for process in (root, *root.children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system
    return total


if __name__ == "__main__":
    run_side()
