"""Processor time and memory of a whole site at rest, by process.

    python -m benchmarks.at_rest [--demo sf] [--checkout PATH] [--settle 90] [--seconds 120]

Starts a fresh site as `weir serve` does, with the code of a checkout, lets it settle, and measures
all its processes for some time; `--running PID` measures a running site instead, by the process id
of its runner. Prints per kind of process: number, processor time in percent of one core, and
memory (proportional set size, MB). "ended" is the time of processes that ended meanwhile. With a
demo also the latency from the append to the result, and the micro-batches.
"""

import argparse
import json
import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import psutil
import redis

from benchmarks import data_plane
from benchmarks.application import batch_durations
from benchmarks.checkouts import HERE, checkout, commit_of
from controlplane.wire import keys
from tests.support.running_weir import RunningWeir

_MEGABYTE: Final = 1 << 20


class Snapshot:
    """The processor seconds of a process tree at a moment."""

    def __init__(self, root: int) -> None:
        self.moment = time.monotonic()
        self.own: dict[psutil.Process, float] = {}
        self.all = 0.0
        runner = psutil.Process(root)
        for process in (runner, *runner.children(recursive=True)):
            try:
                times = process.cpu_times()
            except psutil.NoSuchProcess:
                continue
            self.own[process] = times.user + times.system
            self.all += sum(times[:4])


def kind_of(process: psutil.Process) -> str:
    """Return the name of a process in the report: the runner's child, or the part of a driver."""
    variables = process.environ()
    is_part = "WEIR_DRIVER" in variables or "WEIR_SPARES" in variables
    if not is_part:
        return variables.get("WEIR_CHILD", "runner")
    owner = "spare" if "/spare-" in variables.get("WEIR_DRIVER", "") else "driver"
    return f"{owner}: {process.name()}"


def measure(root: int, seconds: float) -> None:
    """Measure a site for some time, and print the figures of its processes."""
    before = Snapshot(root)
    time.sleep(seconds)
    after = Snapshot(root)
    passed = (after.moment - before.moment) / 100
    rows: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for process, spent in after.own.items():
        try:
            row, size = rows[kind_of(process)], process.memory_full_info().pss
        except psutil.NoSuchProcess:
            continue
        row[0] += 1
        row[1] += (spent - before.own.get(process, 0.0)) / passed
        row[2] += size / _MEGABYTE
    total = (after.all - before.all) / passed
    ended = total - sum(row[1] for row in rows.values())
    print(f"{'process':30}{'number':>7}{'% of a core':>13}{'PSS, MB':>10}")
    for kind, (number, share, pss) in sorted(rows.items(), key=lambda item: -item[1][1]):
        print(f"{kind:30}{number:7.0f}{share:13.2f}{pss:10.0f}")
    print(f"{'ended':30}{'':7}{ended:13.2f}")
    number, memory = (sum(row[index] for row in rows.values()) for index in (0, 2))
    print(f"{'all':30}{number:7.0f}{total:13.2f}{memory:10.0f}", flush=True)


def report_batches(client: "redis.Redis", cluster: str, since_ms: float) -> None:
    """Print the latency and the batches of a cluster since a moment."""
    entries: Any = client.xrange(keys.telemetry_key(cluster))
    every = [json.loads(fields[b"t"]) for _, fields in entries]
    rows = [row for row in every if row["emitted_ms"] >= since_ms]
    figures = data_plane.latencies(rows)
    durations = sorted(batch_durations(client, cluster)[-len(rows) :])
    records = sum(row["in"] for row in rows)
    print(
        f"{cluster}: {len(rows)} batches of {records} records, {durations[len(durations) // 2]} ms "
        f"each; append to result p50 {figures['p50']:.0f}, p95 {figures['p95']:.0f} ms"
    )


@contextmanager
def site(options: argparse.Namespace) -> Iterator[int]:
    """Yield the process id of the runner of a site that has settled."""
    if options.running:
        yield options.running
        return
    print(f"{options.checkout}: {commit_of(options.checkout)}, demo {options.demo or 'none'}")
    with tempfile.TemporaryDirectory(prefix="weir-rest-", dir=options.folder) as name:
        variables = {
            "WEIR_DEMO": options.demo or "0", "PYTHONPATH": str(options.checkout),
            "WEIR_SPARE_DRIVER": "1",
        }  # fmt: skip
        # Python looks for modules in the present folder first.
        os.chdir(options.checkout)
        weir = RunningWeir(Path(name) / "data", variables)
        weir.start()
        try:
            time.sleep(options.settle)
            assert weir.process is not None
            yield weir.process.pid
        finally:
            weir.end()


def main() -> None:
    options = parse_options()
    with site(options) as root:
        since_ms = time.time() * 1000
        measure(root, options.seconds)
        if options.demo:
            data = psutil.Process(root).environ()["WEIR_DATA"]
            url = (Path(data) / "secrets" / "redis_url").read_text()
            with redis.Redis.from_url(url) as client:
                report_batches(client, options.demo, since_ms)


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.at_rest", description=__doc__)
    parser.add_argument("--demo", default="", help="its name; default: a site without clusters")
    parser.add_argument("--checkout", type=checkout, default=HERE, metavar="PATH")
    parser.add_argument("--running", type=int, default=0, metavar="PID")
    parser.add_argument("--settle", type=float, default=90, help="seconds before the measurement")
    parser.add_argument("--seconds", type=float, default=120, help="of the measurement")
    parser.add_argument("--folder", default=None, help="where the site has its data")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
