"""The time without results of other queries after a Python process of Spark has died.

    python -m benchmarks.availability.worker_deaths [--only NAME ...] [--master M]

One cluster with a query that counts, and queries whose functions end or hang their process for one
value. Records are appended five times a second. Prints for each way to die: the longest time
between two finished batches from then on, the number of drivers that it took, and the faults that
the cluster reports. At the end the windows of the query that counts must have each record once;
otherwise the benchmark fails.
"""

import argparse
import ctypes
import itertools
import json
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import psutil
import pyarrow as pa
import redis

from controlplane.wire.language.registered import function
from controlplane.wire.producer import Producer
from controlplane.wire.query import computation_of
from controlplane.wire.query_text import QueryText
from controlplane.wire.routing.publication import publish
from controlplane.wire.routing.query_actions import AddQuery
from controlplane.wire.routing.table import RoutingDelta
from controlplane.wire.schema import ColumnSpec, StreamSchema
from tests.support.driver import Driver, Telemetry
from tests.support.redis_server import running_redis
from tests.support.schemas import FAR_S, assigned
from tests.support.whole_results import read_windows

_CLUSTER: Final = "deaths"
_STREAM: Final = 1
_PUMPS: Final = StreamSchema(
    (ColumnSpec("at", "timestamp(ms)", nullable=False), ColumnSpec("litres", "int64")),
    event_time="at",
    max_future_s=FAR_S,
)
# The modules of Spark's Python processes: of tasks, of commits and of plans.
_WORKER: Final = "pyspark.worker"
_COMMITTER: Final = "python_streaming_sink_runner"
_PLANNER: Final = "python_streaming_source_runner"
_EXITS, _CRASHES, _HANGS = 1, 2, 3
_COUNTS: Final = QueryText({"v": "count(*)"}, window_s=60.0)
_RECORDS: Final = 20
_EVERY_S: Final = 0.2
# A cluster has recovered after so long without a pause.
_SETTLED_S: Final = 12.0
_PAUSE_S: Final = 4.0
_LONGEST_S: Final = 400.0


def _for_value(value: int, act: Callable[[], object]) -> Callable[[Any], Any]:
    def work(values: Any) -> Any:
        if (values == value).any():
            act()
        return values

    return work


# The workers import this module, because WEIR_FUNCTIONS names it.
_FUNCTIONS: Final = {
    "bench_exits": (_EXITS, lambda: os._exit(7)),
    "bench_crashes": (_CRASHES, lambda: ctypes.string_at(0)),
    "bench_hangs": (_HANGS, lambda: sum(itertools.repeat(0))),
}
for _name, (_value, _act) in _FUNCTIONS.items():
    function(takes=("int",), gives="int", name=_name)(_for_value(_value, _act))


class Deaths:
    """A driver, its records, and what its Python processes die of."""

    def __init__(self, url: str, folder: Path, master: str) -> None:
        self._client = redis.Redis.from_url(url)
        texts = [_COUNTS, *(QueryText({"v": f"max({name}(litres))"}, window_s=60.0)
                            for name in _FUNCTIONS)]  # fmt: skip
        queries = [AddQuery(5 + n, 0, n % 2, (_STREAM,), json.dumps(text.to_json()))
                   for n, text in enumerate(texts)]  # fmt: skip
        publish(self._client, _CLUSTER, RoutingDelta(1, (*assigned([_STREAM], 1, _PUMPS), *queries)))
        environment = {
            "WEIR_FUNCTIONS": __spec__.name if __spec__ else __name__,
            "PYTHONPATH": str(Path(__file__).parents[2]),
            **({"WEIR_SPARK_CONF": f"spark.master={master}"} if master else {}),
        }
        self.driver = Driver(url, folder, _CLUSTER, environment, nodes=2, splits=1)
        self._producer = Producer(url, _CLUSTER)
        self.appended = 0

    def append(self, litres: int = 0) -> None:
        """Append records, the last one with this value."""
        rows = [{"at": 1_000 + n, "litres": litres * (n == _RECORDS - 1)} for n in range(_RECORDS)]
        self._producer.append({_STREAM: pa.RecordBatch.from_pylist(rows, _PUMPS.arrow)})
        self.appended += _RECORDS

    def delivered(self) -> int:
        """Return the number of records that finished batches have delivered to the first node."""
        return sum(row["read"] for row in self.telemetry())

    def telemetry(self) -> Telemetry:
        return self.driver.telemetry()

    def longest_pause(self, act: Callable[[], None]) -> tuple[float, int]:
        """Return the longest pause (s) between batches after an act, and the drivers started."""
        act()
        began = last = time.monotonic()
        longest, starts, batches = 0.0, 0, len(self.telemetry())
        while (now := time.monotonic()) - began < _LONGEST_S:
            assert self.driver.process is not None
            if self.driver.process.poll() is not None:
                starts += 1
                self.driver.start()
            self.append()
            rows = len(self.telemetry())
            longest = max(longest, now - last)
            if rows > batches:
                if now - last > _PAUSE_S:
                    began = now
                batches, last = rows, now
            if now - last < _PAUSE_S and now - began > _SETTLED_S:
                break
            time.sleep(_EVERY_S)
        return longest, starts

    def processes(self, *words: str) -> list[psutil.Process]:
        """Return the Python processes of the JVM whose command line has one of the words."""
        assert self.driver.process is not None
        below = psutil.Process(self.driver.process.pid).children(recursive=True)
        return [item for item in below if any(word in _command(item) for word in words)]

    def workers(self, word: str) -> list[psutil.Process]:
        """Return the processes that daemons have forked."""
        return [item for item in self.processes(word) if _command(item) == _command(item.parent())]

    def daemons(self, word: str) -> list[psutil.Process]:
        """Return the processes that fork workers."""
        workers = self.workers(word)
        return [item for item in self.processes(word) if item not in workers]

    def counted(self) -> int:
        """Return the records in the windows of the query that counts."""
        windows = read_windows(self._client, _CLUSTER, 5, computation_of(_COUNTS, _PUMPS.kinds))
        return sum(row.values["v"] for row in windows)


def _command(process: psutil.Process | None) -> str:
    """Return the command line of a process, "" if it has ended."""
    try:
        return " ".join(process.cmdline()) if process else ""
    except psutil.Error:
        return ""


def _kill(processes: list[psutil.Process]) -> None:
    for item in processes:
        os.kill(item.pid, signal.SIGKILL)


def acts(deaths: Deaths) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield the names of ways to die, and what causes them."""
    yield "nothing", lambda: None
    yield "worker", lambda: _kill(deaths.workers(_WORKER)[-1:])
    yield "workers", lambda: _kill(deaths.workers(_WORKER))
    yield "daemon", lambda: _kill(deaths.daemons(_WORKER))
    yield "committer", lambda: _kill(deaths.processes(_COMMITTER))
    yield "planner", lambda: _kill(deaths.processes(_PLANNER))
    yield "all", lambda: _kill(deaths.processes("pyspark"))
    yield "exit", lambda: deaths.append(_EXITS)
    yield "crash", lambda: deaths.append(_CRASHES)
    yield "hang", lambda: deaths.append(_HANGS)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", help="ways to die")
    parser.add_argument("--master", default="", help="of Spark")
    parser.add_argument("--log", default="", help="a copy of the driver's output")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as name:
        folder = Path(name)
        (folder / "redis").mkdir()
        with running_redis(folder / "redis") as url:
            deaths = Deaths(url, folder, options.master)
            deaths.driver.start()
            try:
                deaths.append()
                deaths.driver.wait_for(bool, "batch")
                for way, act in acts(deaths):
                    if options.only and way not in options.only:
                        continue
                    for item in deaths.processes("pyspark"):
                        print("   ", item.pid, item.ppid(), _command(item)[-60:], flush=True)
                    pause, starts = deaths.longest_pause(act)
                    told = {fault["query"]: fault["why"] for row in deaths.telemetry()
                            for fault in row["faults"]}  # fmt: skip
                    print(f"{way:12} {pause:6.1f} s  {starts} drivers  {told}", flush=True)
                deaths.driver.wait_for(lambda _: deaths.counted() >= deaths.appended, "all records")
                print(deaths.counted(), deaths.appended)
            finally:
                deaths.driver.kill()
                if options.log:
                    Path(options.log).write_text(deaths.driver.log.read_text())


if __name__ == "__main__":
    main()
