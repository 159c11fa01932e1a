"""Hosts of one site as namespaces of Linux: each has a name, processes and a network of its own.

A host reaches the site's Redis through its link alone, which a test cuts. Root alone may do so.
"""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import psutil

from controlplane.wire.producer import Producer
from controlplane.wire.query import computation_of
from controlplane.wire.query_text import QueryText
from controlplane.wire.routing.query_actions import AddQuery
from controlplane.wire.schema import ColumnSpec, StreamSchema
from tests.support.driver import Application
from tests.support.pipeline import Pipeline
from tests.support.redis_server import RedisServer
from tests.support.schemas import assigned
from tests.support.whole_results import read_windows

CAN_ISOLATE: Final = os.geteuid() == 0 and bool(shutil.which("unshare") and shutil.which("ip"))
CLUSTER: Final = "sf"
_START_MS: Final = 1_790_000_000_000
_QUERY, _STREAM = 5, 1
_TEXT: Final = QueryText({"n": "sum(n)"}, window_s=60)
_METER: Final = StreamSchema(
    (ColumnSpec("at", "timestamp(ms)", nullable=False), ColumnSpec("n", "int64")), "at"
)
_SPARK: Final = "org.apache.spark.deploy.SparkSubmit"
# Waits until its network is there, and becomes the command. Its temporary files are its own: those
# of another host are named after processes that do not run here, and would be removed.
_BOOT: Final = """
hostname "$0" && mount -t tmpfs tmpfs /dev/shm && export TMPDIR=/dev/shm &&
ip link set lo up && echo && read address &&
ip address add "$address" dev eth0 && ip link set eth0 up && exec "$@" >&2
"""


class Host:
    """A host that runs one command; `number` is part of its addresses."""

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        # Of the range for measurements; runs at the same time have networks of their own.
        own = os.getpid() % 124
        network = f"198.{18 + own // 62}.{own % 62 * 4 + number}"
        self.address = f"{network}.1"
        self._own = f"{network}.2/24"
        self._link = f"weir{os.getpid() % 100_000}h{number}"
        self._process: subprocess.Popen[str] | None = None
        self._create_link()

    def _create_link(self) -> None:
        """Create the link, which ends with the processes of the host."""
        self._remove_link()
        self._commands("link", "add", self._link, "type", "veth", "peer", "name", self._link + "p")
        self._commands("address", "add", f"{self.address}/24", "dev", self._link)
        self._commands("link", "set", self._link, "up")

    def start(self, command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        """Start the command as the first process of the host."""
        self._create_link()
        isolated = ["unshare", "--net", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"]
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [*isolated, "sh", "-c", _BOOT, self.name, *command],
                env={**os.environ, **environment},
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=output, text=True,
            )  # fmt: skip
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdout.readline()
        pid = str(self._process.pid)
        self._commands("link", "set", self._link + "p", "netns", pid, "name", "eth0")
        self._process.stdin.write(self._own + "\n")
        self._process.stdin.flush()

    def cut(self) -> None:
        """Let everything that the host sends and receives be lost."""
        self._commands("link", "set", self._link, "down")

    def restore(self) -> None:
        """Connect it again."""
        self._commands("link", "set", self._link, "up")

    def kill(self) -> None:
        """End all its processes at once, as a loss of power does."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(timeout=60)

    def end(self) -> None:
        """End all its processes, and remove its network."""
        self.kill()
        self._remove_link()

    def is_up(self) -> bool:
        """Return whether its command runs."""
        return self._process is not None and self._process.poll() is None

    def processes(self, word: str) -> list[psutil.Process]:
        """Return its processes with a word in their command lines."""
        result = []
        with suppress(psutil.NoSuchProcess):
            pid = self._process.pid if self._process else 0
            for process in psutil.Process(pid).children(recursive=True) if pid else ():
                with suppress(psutil.Error):
                    if word in process.cmdline():
                        result.append(process)
        return result

    def _remove_link(self) -> None:
        subprocess.run(["ip", "link", "del", self._link], check=False, stderr=subprocess.DEVNULL)

    def _commands(self, *words: str) -> None:
        subprocess.run(["ip", *words], check=True)


class Site(Application):
    """A cluster with a query that sums, and the agents of several hosts that share it."""

    def __init__(self, folder: Path, hosts: Sequence[Host], server: RedisServer) -> None:
        super().__init__(server.url, CLUSTER, folder / "agents.log")
        self.hosts = list(hosts)
        self._folder, self._server = folder, server
        self._environment = {
            "DATABASE_URL": f"sqlite:///{folder}/db.sqlite3",
            "WEIR_RESULTS_DATABASE_URL": os.environ["WEIR_RESULTS_URL"],
            "WEIR_CHECKPOINTS": str(folder / "checkpoints"),
            "WEIR_SECRET_KEY": "k" * 64,
            "DJANGO_SETTINGS_MODULE": "controlplane.settings",
        }
        for step in ("migrate_all", "setup_demo"):
            own = {"REDIS_URL": server.url, "WEIR_DATA": str(folder / "control")}
            subprocess.run(
                [sys.executable, "-m", "django", step, "--verbosity", "0"],
                env={**os.environ, **self._environment, **own}, check=True,
                stdout=subprocess.DEVNULL,
            )  # fmt: skip
        # The test publishes versions past the database, which would count as an older one.
        with closing(sqlite3.connect(folder / "db.sqlite3")) as database, database:
            database.execute("update controlplane_cluster set routing_version = 1000000")
        query = AddQuery(_QUERY, 0, 1, (_STREAM,), json.dumps(_TEXT.to_json()))
        Pipeline(self.client, server.url, CLUSTER).publish(*assigned([_STREAM], 2, _METER), query)
        self._sent = 0

    def command(self) -> list[str]:
        return [sys.executable, "-m", "workers.agent"]

    def environment(self) -> Mapping[str, str]:
        return self._environment

    def start_agent(self, host: Host, **environment: str) -> None:
        """Start the agent of a host."""
        url = f"redis://{host.address}:{self._server.port}/0"
        self._spare_log(host).unlink(missing_ok=True)
        own = {"REDIS_URL": url, "WEIR_DATA": str(self._folder / host.name), **environment}
        host.start(self.command(), {**self._environment, **own}, self.log)

    def owners(self) -> list[Host]:
        """Return the hosts on which Spark runs; without spares that is the driver's."""
        return [host for host in self.hosts if host.processes(_SPARK)]

    def owner(self) -> Host | None:
        """Return the host that holds the cluster, None where it holds it no more."""
        row: Any = self.client.hget("weir:leases:agent", CLUSTER)
        name = (row or b"").decode().partition(":")[0]
        return next((host for host in self.hosts if host.name == name), None)

    def has_spare(self, host: Host) -> bool:
        """Return whether a spare driver of a host waits for a cluster."""
        log = self._spare_log(host)
        return log.exists() and "ready" in log.read_text()

    def _spare_log(self, host: Host) -> Path:
        return self._folder / host.name / "logs" / "spare.log"

    def send(self, count: int = 100) -> None:
        """Append records of one minute, which only the driver reads."""
        with Producer(self._server.url, CLUSTER) as producer:
            rows = [{"at": _START_MS + i, "n": 1} for i in range(self._sent, self._sent + count)]
            producer.append({_STREAM: rows})
        self._sent += count

    def is_read(self) -> bool:
        """Return whether all records are in finished batches."""
        read: int = sum(row["in"] for row in self.telemetry())
        return read == self._sent

    def is_right(self) -> bool:
        """Return whether the results have each record once."""
        windows = read_windows(self.client, CLUSTER, _QUERY, computation_of(_TEXT, _METER.kinds))
        counted: int = sum(dict(window.values)["n"] for window in windows)
        return counted == self._sent


@contextmanager
def running_site(folder: Path, count: int = 3) -> Iterator[Site]:
    """Yield a site with so many hosts, whose agents are not started; nothing is left of it."""
    with ExitStack() as stack:
        hosts = [Host(f"host-{number}", number) for number in range(1, count + 1)]
        for host in hosts:
            stack.callback(host.end)
        (folder / "redis").mkdir(parents=True)
        addresses = [host.address for host in hosts]
        server = stack.enter_context(RedisServer(folder / "redis", addresses=addresses))
        yield Site(folder, hosts, server)
