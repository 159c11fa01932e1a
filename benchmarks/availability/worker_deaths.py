"""The time without results after a process of Spark has died, or Redis was away.

    python -m benchmarks.availability.worker_deaths [--only NAME ...] [--master local[2,1]]
    python -m benchmarks.availability.worker_deaths --executors

One cluster with a query that counts, and queries whose functions end or hang their process for one
value. Records are appended five times a second. Redis is killed, or stopped by a signal, for ten
seconds. A killed `driver` has a spare, as with an agent, `driver-cold` has none. With
`--executors` one of the two executors of a standalone cluster is killed. Prints for each way to
die: the longest time between two finished batches from then on, or after Redis is there
again, the number of drivers that it took, the load of the machine, and the faults that the cluster
reports. At the end the windows of the query that counts must have each record once; otherwise the
benchmark fails.
"""

import argparse
import ctypes
import itertools
import json
import os
import signal
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import psutil
import pyarrow as pa
import redis

from controlplane.processes.runtime.java import find_java
from controlplane.wire.language.registered import function
from controlplane.wire.producer import Producer
from controlplane.wire.query import computation_of
from controlplane.wire.query_text import QueryText
from controlplane.wire.routing.publication import publish
from controlplane.wire.routing.query_actions import AddQuery
from controlplane.wire.routing.table import RoutingDelta
from controlplane.wire.schema import ColumnSpec, StreamSchema
from tests.support.driver import (
    COMMITTER,
    PLANNER,
    SERVER,
    WORKER,
    Driver,
    SparedDriver,
    kill_all,
    name_of,
)
from tests.support.redis_server import RedisServer
from tests.support.schemas import FAR_S, assigned
from tests.support.standalone import Standalone, running_standalone
from tests.support.whole_results import read_windows
from workers.agent.class_archive import java_environment

_CLUSTER: Final = "deaths"
_STREAM: Final = 1
_PUMPS: Final = StreamSchema(
    (ColumnSpec("at", "timestamp(ms)", nullable=False), ColumnSpec("litres", "int64")),
    event_time="at",
    max_future_s=FAR_S,
)
_EXITS, _CRASHES, _HANGS = 1, 2, 3
_COUNTS: Final = QueryText({"v": "count(*)"}, window_s=60.0)
_RECORDS: Final = 20
_EVERY_S: Final = 0.2
# A cluster has recovered after so long without a pause.
_SETTLED_S: Final = 12.0
_PAUSE_S: Final = 6.0
_LONGEST_S: Final = 400.0
# Redis is away for so long.
_AWAY_S: Final = 10.0


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


class _Driver(SparedDriver):
    """A driver whose Spark has a master, "" for the default."""

    master = ""

    def command(self) -> list[str]:
        return [*super().command(), *(["--master", self.master] if self.master else [])]


class Deaths:
    """A driver, its records, and what its Python processes die of."""

    def __init__(
        self, server: RedisServer, folder: Path, master: str, functions: Collection[str]
    ) -> None:
        self.server, url = server, server.url
        self._client = redis.Redis.from_url(url)
        texts = [_COUNTS, *(QueryText({"v": f"max({name}(litres))"}, window_s=60.0)
                            for name in functions)]  # fmt: skip
        queries = [AddQuery(5 + n, 0, n % 2, (_STREAM,), json.dumps(text.to_json()))
                   for n, text in enumerate(texts)]  # fmt: skip
        publish(
            self._client, _CLUSTER, RoutingDelta(1, (*assigned([_STREAM], 1, _PUMPS), *queries))
        )
        environment = {
            "WEIR_FUNCTIONS": (__spec__.name if __spec__ else __name__) if functions else "",
            "PYTHONPATH": str(Path(__file__).parents[2]),
            # As an agent starts drivers.
            **java_environment(find_java(os.environ, folder / "java", print).home),
            "WEIR_SPARK_CONF": "spark.cores.max=2 spark.executor.memory=512m",
        }
        self.driver = _Driver(url, folder, _CLUSTER, environment, nodes=2, splits=1)
        self.driver.master = master
        self._producer = Producer(url, _CLUSTER)
        self.appended = 0

    def append(self, litres: int = 0) -> None:
        """Append records, the last one with this value."""
        rows = [{"at": 1_000 + n, "litres": litres * (n == _RECORDS - 1)} for n in range(_RECORDS)]
        self._producer.append({_STREAM: pa.RecordBatch.from_pylist(rows, _PUMPS.arrow)})
        self.appended += _RECORDS

    def longest_pause(self, act: Callable[[], None]) -> tuple[float, int]:
        """Return the longest pause (s) between batches after an act, and the drivers started."""
        act()
        began = last = time.monotonic()
        longest, starts, batches = 0.0, 0, len(self.driver.telemetry())
        while (now := time.monotonic()) - began < _LONGEST_S:
            assert self.driver.process is not None
            if self.driver.process.poll() is not None:
                starts += 1
                self.driver.start()
            self.append()
            rows = len(self.driver.telemetry())
            longest = max(longest, now - last)
            if rows > batches:
                if now - last > _PAUSE_S:
                    began = now
                batches, last = rows, now
            if now - last < _PAUSE_S and now - began > _SETTLED_S:
                break
            time.sleep(_EVERY_S)
        return longest, starts

    def counted(self) -> int:
        """Return the records in the windows of the query that counts."""
        windows = read_windows(self._client, _CLUSTER, 5, computation_of(_COUNTS, _PUMPS.kinds))
        return sum(row.values["v"] for row in windows)


def _workers(driver: Driver) -> list[psutil.Process]:
    """Return the workers of tasks, which daemons of the same name have forked."""
    items = driver.python_processes(WORKER)
    return [item for item in items if name_of(item) == name_of(item.parent() or item) == WORKER]


def _restart_redis(server: RedisServer) -> None:
    server.kill()
    time.sleep(_AWAY_S)
    server.start()


def _stop_redis(server: RedisServer) -> None:
    server.send_signal(signal.SIGSTOP)
    time.sleep(_AWAY_S)
    server.send_signal(signal.SIGCONT)


def acts(deaths: Deaths) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield the names of ways to die, and what causes them."""
    driver = deaths.driver
    yield "nothing", lambda: None
    yield "worker", lambda: kill_all(_workers(driver)[-1:])
    yield "workers", lambda: kill_all(_workers(driver))
    yield "daemon", lambda: kill_all(driver.python_processes(WORKER)[:1])
    yield "committer", lambda: kill_all(driver.python_processes(COMMITTER))
    yield "planner", lambda: kill_all(driver.python_processes(PLANNER))
    yield "redis", lambda: _restart_redis(deaths.server)
    yield "redis-hang", lambda: _stop_redis(deaths.server)
    yield "server", lambda: kill_all(driver.python_processes(SERVER)[:1])
    yield "driver-cold", driver.kill
    yield "driver", driver.kill
    yield "exit", lambda: deaths.append(_EXITS)
    yield "crash", lambda: deaths.append(_CRASHES)
    yield "hang", lambda: deaths.append(_HANGS)


def _kill_an_executor(cluster: Standalone) -> None:
    min(cluster.executors().items())[1].kill()


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options of a command line, by default that of the process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", help="ways to die")
    parser.add_argument("--master", default="", help="of Spark; local[2,1]: without retries")
    parser.add_argument("--executors", action="store_true", help="kill one of two executors")
    parser.add_argument("--log", default="", help="a copy of the driver's output")
    return parser.parse_args(arguments)


def _measure(deaths: Deaths, ways: Sequence[tuple[str, Callable[[], None]]]) -> None:
    """Print a line for each way to die; fail unless each record is counted once."""
    deaths.append()
    deaths.driver.wait_for(bool, "batch")
    for way, act in ways:
        if way == "driver":
            deaths.driver.prepare()
        pause, starts = deaths.longest_pause(act)
        faults = {fault["query"]: fault["why"] for row in deaths.driver.telemetry()
                  for fault in row["faults"]}  # fmt: skip
        load = f"load {os.getloadavg()[0]:4.1f}"
        print(f"{way:12} {pause:6.1f} s  {starts} drivers  {load}  {faults}", flush=True)
    deaths.driver.wait_for(lambda _: deaths.counted() >= deaths.appended, "all records")
    assert deaths.counted() == deaths.appended, "a record is counted twice"
    print(f"done: {deaths.appended:,} records, each counted once")


def main() -> None:
    """Print the table."""
    options = parse_options()
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as name, ExitStack() as stack:
        folder = Path(name)
        (folder / "redis").mkdir()
        master, functions = options.master, list(_FUNCTIONS)
        if options.executors:
            # Executors have Weir's packages, not this one.
            functions = []
            (folder / "spark").mkdir()
            cluster = stack.enter_context(running_standalone(folder / "spark"))
            master = cluster.url
        # Appended records must not be lost: they are counted at the end.
        with RedisServer(folder / "redis", fsync="always") as server:
            deaths = Deaths(server, folder, master, functions)
            ways = [way for way in acts(deaths) if not options.only or way[0] in options.only]
            if options.executors:
                ways = [("executor", lambda: _kill_an_executor(cluster))]
            deaths.driver.start()
            try:
                _measure(deaths, ways)
            finally:
                deaths.driver.end()
                if options.log:
                    Path(options.log).write_text(deaths.driver.log.read_text())


if __name__ == "__main__":
    main()
