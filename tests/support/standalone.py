"""A real Spark standalone cluster on this machine, from the installed pyspark."""

import json
import os
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

import psutil
import pyspark

from controlplane.processes.runtime.java import find_java
from tests.support.driver import Driver
from tests.support.kubernetes import Pods
from tests.support.redis_server import free_port

HOST: Final = "127.0.0.1"
START_SECONDS: Final = 90.0
_SPARK: Final = Path(pyspark.__file__).parent
# A small heap and a quick start: these processes live for one test.
_QUICK: Final = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
# Nobody submits by REST, and its port is fixed.
_NO_REST: Final = "-Dspark.master.rest.enabled=false"


@dataclass(frozen=True)
class Standalone:
    """A running cluster: its master's URL, its page, and its worker processes."""

    url: str
    page: str
    workers: list[psutil.Process]

    def settings(self) -> tuple[str, ...]:
        """Return what Spark needs to know of it."""
        return (f"spark.cores.max={len(self.workers)}",)

    def executors(self) -> dict[str, psutil.Process]:
        """Return the JVM of each executor that runs, as its nodes' reports name it."""
        found: dict[str, psutil.Process] = {}
        for worker in self.workers:
            for process in worker.children():
                with suppress(psutil.Error):
                    words = process.cmdline()
                    if "--executor-id" in words:
                        number = words[words.index("--executor-id") + 1]
                        found[f"{socket.gethostname()}/{number}"] = process
        return found

    def alive(self) -> int | None:
        """Return how many workers the master knows, None while it does not answer with JSON.

        A master that is starting answers with its start page.
        """
        try:
            with urlopen(self.page, timeout=5) as answer:
                told: Any = json.load(answer)
        except (OSError, json.JSONDecodeError):
            return None
        return [worker["state"] for worker in told["workers"]].count("ALIVE")


class ClusterDriver(Driver):
    """`python -m workers.pipeline` on a standalone cluster, or in pods."""

    def __init__(
        self, cluster: Standalone | Pods, redis_url: str, directory: Path, nodes: int
    ) -> None:
        settings = (
            *cluster.settings(),
            "spark.executor.memory=512m",
            f"spark.executor.extraJavaOptions={_QUICK}",
            f"spark.driver.extraJavaOptions={_QUICK}",
        )
        environment = {"WEIR_SPARK_CONF": shlex.join(settings)}
        super().__init__(redis_url, directory, "sf", environment, nodes=nodes)
        self._master = cluster.url

    def command(self) -> list[str]:
        return [*super().command(), "--master", self._master]


@contextmanager
def running_standalone(directory: Path, workers: int = 2) -> Iterator[Standalone]:
    """Yield a cluster whose workers offer one core and have registered; end all of it."""
    url, page = f"spark://{HOST}:{free_port()}", free_port()
    environment = _environment(directory)
    port = url.rpartition(":")[2]
    with ExitStack() as stack:

        def start(kind: str, name: str, *options: str) -> psutil.Process:
            log = stack.enter_context((directory / f"{name}.log").open("wb"))
            command = [str(_SPARK / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}"]
            process = subprocess.Popen(
                [*command, "--host", HOST, *options],
                env=environment, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
            stack.callback(_end, psutil.Process(process.pid))
            return psutil.Process(process.pid)

        start("master.Master", "master", "--port", port, "--webui-port", str(page))
        cluster = Standalone(url, f"http://{HOST}:{page}/json/", [])
        # A worker that finds no master tries again after ten seconds.
        _wait_for(cluster, 0, directory)
        cluster.workers.extend(
            start(
                "worker.Worker", f"worker-{number}", "--cores", "1", "--memory", "1g",
                "--webui-port", "0", "--work-dir", str(directory / f"work-{number}"), url,
            )
            for number in range(workers)
        )  # fmt: skip
        _wait_for(cluster, workers, directory)
        yield cluster


def _environment(directory: Path) -> dict[str, str]:
    # What this shell has for Spark or Python must not help: the driver brings its own code along.
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return {
        **kept,
        "SPARK_HOME": str(_SPARK),
        "SPARK_LOCAL_IP": HOST,
        "SPARK_LOCAL_DIRS": str(directory / "local"),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": f"{_QUICK} {_NO_REST}",
        "PYSPARK_PYTHON": sys.executable,
        "JAVA_HOME": str(find_java(os.environ, directory / "java", print).home),
    }


def _wait_for(cluster: Standalone, workers: int, directory: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while (alive := cluster.alive()) is None or alive < workers:
        if time.monotonic() > deadline:
            logs = "\n".join(log.read_text()[-2000:] for log in sorted(directory.glob("*.log")))
            raise AssertionError(f"no {workers} workers in {START_SECONDS:.0f} s:\n{logs}")
        time.sleep(0.1)


def _end(process: psutil.Process) -> None:
    """End a daemon and everything that it started, whatever state they are in."""
    with suppress(psutil.NoSuchProcess):
        family = [process, *process.children(recursive=True)]
        process.terminate()
        psutil.wait_procs([process], timeout=5)
        for one in family:
            with suppress(psutil.NoSuchProcess):
                one.kill()
        psutil.wait_procs(family, timeout=10)
