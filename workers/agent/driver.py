"""A Spark driver as a tree of processes: start, observation, end.

The JVM and the Python workers of a driver inherit the environment variable
`WEIR_DRIVER=<checkpoint directory>`, which identifies them. Unlike a process group it includes
Spark's Python daemon, and unlike a process id it survives restarts of the agent and is not reused.
That of a driver which was a spare (`spare.py`) has the mark of the spare.
"""

import logging
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Final

from django.conf import settings

from controlplane.child_processes.preload import Process
from controlplane.child_processes.start import spawn
from controlplane.child_processes.trees import kill_with_environment
from controlplane.installation import env
from controlplane.processes.runtime.java import find_java
from controlplane.processes.runtime.supervisor import last_error, rotate
from controlplane.wire.generation import STATE_FORMAT
from controlplane.wire.log.address import log_identity
from workers.agent.class_archive import java_environment
from workers.agent.spare import Spare

logger = logging.getLogger("weir.agent")

MARK: Final = "WEIR_DRIVER"


@dataclass(frozen=True, slots=True)
class DriverSpec:
    """The settings of a driver; other settings require another driver.

    `nodes` and `splits` may change while the driver runs: the driver uses them for routing tables
    without these numbers. `partitions`: of a new checkpoint, 0 for the number of cores of the
    master. `max_records`, `max_batch_mb`: limits of a micro-batch.
    """

    cluster: str
    nodes: int = field(compare=False)
    splits: int = field(compare=False)
    trigger_ms: int
    master: str = "local[2]"
    log_url: str = field(default="", repr=False)
    partitions: int = 0
    max_records: int = 200_000
    max_batch_mb: int = 64


# What the control plane alone may have; drivers inherit no other variable with a password.
_SITE_SECRETS: Final = frozenset(
    name + ending
    for name in (
        "REDIS_URL", "DATABASE_URL", "WEIR_RESULTS_DATABASE_URL", "WEIR_SECRET_KEY",
        "WEIR_OIDC_CLIENT_SECRET", "WEIR_SPARK_CONF", "WEIR_EMAIL_URL", "WEIR_OTLP_TOKEN",
        "WEIR_OPENLINEAGE_TOKEN",
    )
    for ending in ("", "_FILE")
)  # fmt: skip
_SITE_PREFIXES: Final = ("WEIR_SINK_SECRET_", "WEIR_WEBHOOK_SECRET_")


@dataclass(frozen=True, slots=True)
class Site:
    """The environment of drivers: data directory, Redis, further variables (those of Java).

    `checkpoints`: a directory that executors can access, by default in the data directory.
    `driver_url`: returns the URL of Redis for the driver of a cluster, by default `redis_url`;
    `results_url`: of the database of results; both raise `OSError`.
    `driver_host`: the address of drivers for executors; `spark_conf`: settings, as in
    WEIR_SPARK_CONF; `launch`: starts processes as `spawn` does.
    """

    data: Path
    redis_url: str = field(repr=False)
    env: Mapping[str, str]
    checkpoints: Path | None = None
    driver_host: str = ""
    spark_conf: str = field(default="", repr=False)
    driver_url: Callable[[str], str] | None = None
    results_url: Callable[[str], str] = field(default=lambda _: settings.RESULTS_URL, repr=False)
    launch: Callable[..., Process] = spawn

    def checkpoint(self, cluster: str) -> Path:
        """Return the checkpoint directory of a cluster."""
        return (self.checkpoints or self.data / "checkpoints") / f"{cluster}-{STATE_FORMAT}"

    def log(self, cluster: str) -> Path:
        """Return the file of the driver's output."""
        return self.data / "logs" / f"driver-{cluster}.log"


def site_of(data: Path) -> Site:
    """Create a data directory and return its site. Raises `CheckFailed` without Java."""
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    java = find_java(os.environ, data / "java", logger.warning)
    checkpoints = env.text("WEIR_CHECKPOINTS")
    # Checked here, where errors are visible; the drivers' workers inherit them.
    env.integer("WEIR_CALL_SECONDS", 10, 1, 3_600)
    env.integer("WEIR_WORKER_MEMORY_MB", 2_048, 256)
    return Site(
        data,
        env.redis_url(),
        java_environment(java.home),
        Path(checkpoints).expanduser().resolve() if checkpoints else None,
        env.text("WEIR_DRIVER_HOST"),
        env.secret("WEIR_SPARK_CONF"),
    )


# Returns the command line of a driver.
CommandFactory = Callable[[DriverSpec, Site], Sequence[str]]


def pipeline_command(spec: DriverSpec, site: Site) -> list[str]:
    """Return the command line of the Spark application, which any user can read."""
    return [sys.executable, "-m", "workers.pipeline", *pipeline_arguments(spec, site)]


def pipeline_arguments(spec: DriverSpec, site: Site) -> list[str]:
    """Return the arguments of the Spark application."""
    return [
        "--cluster", spec.cluster,
        "--checkpoint", str(checkpoint_of(spec, site)),
        "--nodes", str(spec.nodes), "--splits", str(spec.splits),
        "--trigger-ms", str(spec.trigger_ms), "--master", spec.master,
        "--max-records", str(spec.max_records), "--max-batch-mb", str(spec.max_batch_mb),
        *(("--partitions", str(spec.partitions)) if spec.partitions else ()),
        *(("--driver-host", site.driver_host) if site.driver_host else ()),
    ]  # fmt: skip


def secret_environment(spec: DriverSpec, site: Site) -> dict[str, str]:
    """Return the settings of the Spark application that may have passwords.

    Only this user can read the environment of a process.
    """
    return {
        "REDIS_URL": site.driver_url(spec.cluster) if site.driver_url else site.redis_url,
        "WEIR_RESULTS_URL": site.results_url(spec.cluster),
        "WEIR_LOG_URL": spec.log_url,
        "WEIR_SPARK_CONF": site.spark_conf,
    }


def checkpoint_of(spec: DriverSpec, site: Site) -> Path:
    """Return the checkpoint of a driver; each log has its own."""
    place = site.checkpoint(spec.cluster)
    if not spec.log_url:
        return place
    mark = sha256(log_identity(spec.log_url).encode()).hexdigest()[:8]
    return place.with_name(f"{place.name}-{mark}")


class Driver:
    """A started driver."""

    def __init__(
        self,
        spec: DriverSpec,
        site: Site,
        command: CommandFactory,
        take_spare: Callable[[DriverSpec], Spare | None] = lambda _: None,
    ) -> None:
        """Start the driver, or let a spare become it. Raises `OSError` if it cannot start.

        The caller has ended other drivers of this checkpoint with `end_strays`.
        """
        self.spec = spec
        self._log = site.log(spec.cluster)
        self._log.parent.mkdir(parents=True, exist_ok=True)
        site.checkpoint(spec.cluster).parent.mkdir(parents=True, exist_ok=True)
        rotate(self._log)
        self._log_start = self._log.stat().st_size if self._log.exists() else 0
        # May fail: no spare is lost then.
        secret = secret_environment(spec, site)
        spare = take_spare(spec)
        if spare is None:
            self._mark = str(site.checkpoint(spec.cluster))
            variables = environment(site, self._mark, is_local=spec.master.startswith("local"))
            self._process = site.launch(command(spec, site), variables | secret, self._log)
        else:
            self._mark, self._process = spare.mark, spare.process
            arguments = pipeline_arguments(spec, site)
            try:
                spare.become(arguments, secret, self._log)
            except OSError:
                self.kill()
                raise

    @property
    def pid(self) -> int:
        """Return the id of the driver's main process, which its heartbeat names."""
        return self._process.pid

    def exit_code(self) -> int | None:
        """Return the exit code of the main process, None while it runs."""
        return self._process.poll()

    def last_error(self) -> str:
        """Return the last line of its output with an error, or the last line."""
        return last_error(self._log, self._log_start)

    def request_stop(self) -> None:
        """Send SIGTERM to the main process, which stops Spark and exits."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)

    def kill(self) -> bool:
        """Kill (-9) all processes of the driver; return whether all have exited."""
        return kill_marked(self._mark, self._process)


def environment(site: Site, mark: str, *, is_local: bool) -> dict[str, str]:
    """Return the environment of a driver or a spare, without secrets; `mark`: of its processes."""
    # Without it Spark resolves the name of this machine, which may hang.
    here = {"SPARK_LOCAL_IP": "127.0.0.1"} if is_local else {}
    return {
        **here,
        **{
            name: value
            for name, value in os.environ.items()
            if name not in _SITE_SECRETS and not name.startswith(_SITE_PREFIXES)
        },
        **site.env,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        MARK: mark,
    }


def kill_marked(mark: str, process: Process) -> bool:
    """Kill (-9) all processes of a driver or a spare; return whether all have exited.

    `process`: the main one, a child of this process.
    """
    # A fork does not show its mark at once.
    process.kill()
    all_ended = kill_with_environment(MARK, mark)
    # Collects its exit code.
    process.poll()
    return all_ended


def end_strays(site: Site, cluster: str) -> bool:
    """Kill processes of an earlier driver of this checkpoint; return whether it is free."""
    return kill_with_environment(MARK, str(site.checkpoint(cluster)))
