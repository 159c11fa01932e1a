"""What benchmarks of the control plane run on: a database, a Redis, web and worker of their own."""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from tests.support.postgres import running_postgres
from tests.support.redis_server import free_port, running_redis

LOCAL: Final = "127.0.0.1"
# The longest start of the processes, on a machine with other work.
START_S: Final = 240.0


def figures(taken: Sequence[float]) -> str:
    """Return median, p95, worst and number of durations in seconds, as text in ms."""
    ordered = sorted(taken)
    p95 = ordered[min(len(ordered) - 1, round(len(ordered) * 0.95))]
    middle = statistics.median(ordered)
    return (
        f"median {middle * 1000:7.1f} ms  p95 {p95 * 1000:7.1f} ms  "
        f"worst {ordered[-1] * 1000:7.1f} ms  n {len(ordered)}"
    )


def wait_until(holds: Callable[[], bool], seconds: float = 60) -> None:
    """Wait until a condition holds. Raises `TimeoutError`."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"the condition does not hold after {seconds:g} s")
        time.sleep(0.002)


@contextmanager
def fresh_weir(*, postgres: bool = False) -> Iterator[Path]:
    """Set Django up on an empty database and Redis; yield the data directory.

    The database is that of DATABASE_URL, if set, or SQLite; with `postgres`, a PostgreSQL server of
    this benchmark.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="weir-bench-")))
        if postgres:
            os.environ["DATABASE_URL"] = stack.enter_context(running_postgres())
        set_up_django(folder, stack.enter_context(running_redis(folder)))
        yield folder


def set_up_django(data: Path, redis_url: str) -> None:
    """Set Django up on this data directory and Redis, and create the tables of the database."""
    os.environ |= {
        "WEIR_DATA": str(data),
        "REDIS_URL": redis_url,
        "DJANGO_SETTINGS_MODULE": "controlplane.settings",
        "WEIR_LOG_LEVEL": "ERROR",
    }
    import django  # noqa: PLC0415 - needs the environment

    django.setup()
    from django.core.management import call_command  # noqa: PLC0415

    call_command("migrate_all", verbosity=0)


@contextmanager
def running_services(data: Path, names: Sequence[str] = ("web", "worker")) -> Iterator[str]:
    """Start these processes with the commands of `make run`; yield the URL once they answer."""
    from controlplane.processes.runtime.children import Place, agent_child, service_children  # noqa: PLC0415
    from controlplane.processes.runtime.web import open_listener  # noqa: PLC0415

    java = Path(os.environ.get("JAVA_HOME", ""))
    place = Place(data, LOCAL, free_port(), os.environ["REDIS_URL"], java)
    with (
        open_listener(LOCAL, place.port) as listener,
        (data / "services.log").open("wb") as log,
    ):
        children = [*service_children(place, listener.fileno()), agent_child()]
        started = [
            subprocess.Popen(
                child.command,
                stdout=log,
                stderr=log,
                env=place.environment(),
                pass_fds=child.inherited,
            )
            for child in children
            if child.kind in names
        ]
        try:
            url = place.address.rstrip("/")
            wait_until(
                lambda: _answers(url) and ("worker" not in names or _is_worker_ready()), START_S
            )
            yield url
        except BaseException:
            print((data / "services.log").read_text()[-4000:], file=sys.stderr)
            raise
        finally:
            for process in started:
                process.terminate()
            for process in started:
                _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Wait for a process that was terminated; kill it if it does not end."""
    try:
        process.wait(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _is_worker_ready() -> bool:
    from workers.celery import app  # noqa: PLC0415

    return bool(app.control.ping())


def _answers(url: str) -> bool:
    import httpx  # noqa: PLC0415

    try:
        return httpx.get(f"{url}/healthz").is_success
    except httpx.TransportError:
        return False


@contextmanager
def api_client(url: str, user: Any) -> Iterator[Any]:
    """Yield an HTTP client of the web process with a token of the user."""
    import httpx  # noqa: PLC0415

    from controlplane.access import tokens  # noqa: PLC0415

    headers = {"Authorization": f"Bearer {tokens.create(user, 'bench')}"}
    with httpx.Client(base_url=url, headers=headers, timeout=120) as client:
        yield client
