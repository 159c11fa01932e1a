"""The processes of Weir: their command lines, and advice for one that keeps failing."""

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from controlplane.installation import env
from controlplane.installation.demos import SLUGS
from controlplane.installation.extras import has_lab

# Two cores are shared by all: no library may start a thread per core in every process.
ONE_THREAD: Final = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "ARROW_IO_THREADS": "2",
    "MALLOC_ARENA_MAX": "2",
}
# The web imports pages and API; Celery would do so for Django's checks, in each process.
UNCHECKED: Final = ("CELERY_SKIP_CHECKS=1",)
# Runs at low priority.
YIELDING: Final = ("nice", "-n", "10")
LOCAL: Final = "127.0.0.1,localhost"
# The worker that a start waits for, by its name on the broker.
WORKER: Final = "worker@weir"
# Webhooks that receive messages at the same time.
WEBHOOK_THREADS: Final = "8"
# At ten times real time rates change little while an operator reads a proposal (ten minutes); a
# trip lasts for a minute, so most queries are long-lived.
DEMO_QUERIES: Final = 300
DEMO_SPEED: Final = 10
# The bound of the back-off of processes that people and all others wait for (s).
PROMPT_S: Final = 10.0
# A process that writes no heartbeat for this time is hung (s).
SILENT_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """One process: its name, command line, advice if it fails, time to stop (s).

    `longest_pause_s`: the bound of the back-off. `is_shown`: whether warnings in its log are shown.
    `inherited`: descriptors that it inherits. `silent_s`: without a heartbeat for this time it is
    killed and restarted, None for never.
    """

    name: str
    command: tuple[str, ...]
    advice: str
    patience_s: float = 10.0
    longest_pause_s: float = 60.0
    is_shown: bool = True
    inherited: tuple[int, ...] = ()
    silent_s: float | None = None

    @property
    def kind(self) -> str:
        """Return the name of its kind: that of `web-2` is `web`."""
        return self.name.partition("-")[0]


@dataclass(frozen=True, slots=True)
class Place:
    """The place of this Weir: data directory, web address, Redis, Java home."""

    data: Path
    host: str
    port: int
    redis_url: str = field(repr=False)
    java_home: Path

    @property
    def address(self) -> str:
        """The address for a browser on this machine."""
        everywhere = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104 - compared, not bound
        return f"http://{everywhere.get(self.host, self.host)}:{self.port}/"

    def environment(self) -> dict[str, str]:
        """Return the environment of every child."""
        return {
            **base_environment(),
            "WEIR_DATA": str(self.data),
            "WEIR_RUN": str(self.data),
            "WEIR_HOST": self.host,
            "WEIR_PORT": str(self.port),
            "REDIS_URL": self.redis_url,
            "JAVA_HOME": str(self.java_home),
            # The processes call each other by HTTP without a proxy.
            "NO_PROXY": ",".join(filter(None, [os.environ.get("NO_PROXY"), LOCAL])),
            "no_proxy": ",".join(filter(None, [os.environ.get("no_proxy"), LOCAL])),
        }


def base_environment() -> dict[str, str]:
    """Return the environment of a process of Weir that runs alone."""
    # The environment takes precedence over the defaults.
    given = {**ONE_THREAD, **os.environ}
    return given | {"DJANGO_SETTINGS_MODULE": "controlplane.settings", "PYTHONUNBUFFERED": "1"}


def commands_apart(data: Path, host: str, port: int) -> dict[str, tuple[str, ...]]:
    """Return the command lines of processes that run without the runner, by name."""
    web = python(
        "-m", "controlplane.processes.runtime.web", "--host", host, "--port", str(port)
    )  # fmt: skip
    children = [agent_child(), *service_children(Place(data, host, port, "", Path()), 0)]
    commands = {child.kind: child.command for child in children}
    return commands | {"web": web}


def python(*arguments: str) -> tuple[str, ...]:
    """Return a command line of this Python."""
    return (sys.executable, *arguments)


def django(*arguments: str) -> tuple[str, ...]:
    """Return a command line of Django's management commands."""
    return python("-m", "django", *arguments)


def redis_child(command: list[str]) -> ChildSpec:
    """Return the Redis process, which reads its append-only file again after a restart."""
    return ChildSpec(
        "redis",
        tuple(command),
        "look for the disk, the memory and the port in its log; its data is in <data>/redis",
        patience_s=15.0,
        # Everything else waits for it.
        longest_pause_s=PROMPT_S,
        # Its warnings are mostly advice on kernel settings.
        is_shown=False,
    )


def agent_child() -> ChildSpec:
    """Return the agent, which stops its Spark drivers before it stops."""
    return ChildSpec(
        "agent",
        python("-m", "workers.agent"),
        "read logs/agent.log and logs/driver-<cluster>.log",
        patience_s=30.0,
    )


def service_children(place: Place, listener: int) -> list[ChildSpec]:
    """Return the processes of the control plane; `listener`: the web's listening socket."""
    logged = "read its log; "
    return [
        *web_children(listener),
        # Two processes: the computation of a proposal must not delay the placement of queries.
        ChildSpec("worker",
                  ("env", *UNCHECKED,
                   *_celery_worker("weir", WORKER, "prefork", "--concurrency", "2",
                                   "--max-memory-per-child", "1000000")),
                  f"{logged}a broker error there means Redis"),
        *([_lab_child()] if has_lab() else []),
        # Threads, as it mostly waits for receivers: a slow one blocks one thread. It imports its
        # own tasks alone: 90 MB instead of 260.
        ChildSpec("webhooks",
                  ("env", "WEIR_TASKS=workers.webhooks", *UNCHECKED,
                   *_celery_worker("webhooks", "webhooks@weir", "threads", "--concurrency",
                                   WEBHOOK_THREADS)),
                  f"{logged}its messages are not lost"),
        _beat(place),
        ChildSpec("relay", python("-m", "workers.relay"), "read its log: Redis or the database",
                  silent_s=SILENT_S),
        ChildSpec("sinks", python("-m", "workers.sinks"), f"{logged}results wait for it",
                  longest_pause_s=PROMPT_S, silent_s=SILENT_S),
    ]  # fmt: skip


def _lab_child() -> ChildSpec:
    """Return the worker of the Lab, at low priority.

    The solo pool runs experiments in the process that receives the signal to stop, so a run returns
    to the queue immediately.
    """
    own = (*YIELDING, "env", "WEIR_TASKS=workers.lab", *UNCHECKED)
    command = (*own, *_celery_worker("lab", "lab@weir", "solo"))
    return ChildSpec("lab", command, "read its log; its runs are not lost")


def replayer_child(place: Place) -> ChildSpec:
    """Return the demonstrations' producer, which waits for the web, its token and the clusters.

    It replays all demonstrations, as a cluster can be added on a page later.
    """
    command = python(
        "-m", "workers.demo.replay", "--demos", ",".join(SLUGS), "--url", place.address.rstrip("/"),
        "--token-file", str(place.data / "secrets" / "demo_token"),
        "--long-lived", str(env.integer("WEIR_DEMO_MICE", DEMO_QUERIES)),
        "--speed", str(env.integer("WEIR_DEMO_SPEED", DEMO_SPEED, minimum=1, maximum=10_000)),
    )  # fmt: skip
    advice = "read its log; WEIR_DEMO=0 starts without the demo"
    return ChildSpec("replayer", command, advice)


def web_children(listener: int) -> list[ChildSpec]:
    """Return the web processes: one per core, two at least and four at most by default.

    With two, the end of one interrupts nothing but its own requests.
    """
    default = min(4, max(2, os.cpu_count() or 1))
    number = env.integer("WEIR_WEB_WORKERS", default, minimum=1, maximum=64)
    command = python("-m", "controlplane.processes.runtime.web", "--fd", str(listener))
    advice = "read its log: the last lines name the module that failed"
    return [
        ChildSpec(
            f"web-{index}", command, advice,
            longest_pause_s=PROMPT_S, inherited=(listener,), silent_s=SILENT_S,
        )
        for index in range(1, number + 1)
    ]  # fmt: skip


def _celery_worker(queue: str, hostname: str, pool: str, *options: str) -> tuple[str, ...]:
    return python(
        "-m", "celery", "-A", "workers.celery", "worker", "--pool", pool, *options,
        "--loglevel", "INFO", "--without-gossip", "--without-mingle", "--without-heartbeat",
        "--hostname", hostname, "--queues", queue,
    )  # fmt: skip


def _beat(place: Place) -> ChildSpec:
    schedule = place.data / "celerybeat-schedule"
    command = python(
        "-m", "celery", "-A", "workers.celery", "beat", "--loglevel", "WARNING",
        "--scheduler", "workers.celery_beats:BeatingScheduler",
        "--schedule", str(schedule), "--pidfile", "",
    )  # fmt: skip
    # It sends tasks and runs none.
    small = ("env", "WEIR_TASKS=workers.webhooks", *UNCHECKED)
    return ChildSpec(
        "beat", (*small, *command), f"remove {schedule}* and start again; it is created again"
    )
