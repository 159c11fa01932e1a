"""What benchmarks of the control plane run on: a Redis, a web server and a worker of their own."""

import shutil
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


def tell(what: str, taken: Sequence[float]) -> None:
    """Print median, p95 and worst of what was measured in seconds."""
    ordered = sorted(taken)
    p95 = ordered[min(len(ordered) - 1, round(len(ordered) * 0.95))]
    print(
        f"{what}: median {statistics.median(ordered) * 1000:.0f} ms, "
        f"p95 {p95 * 1000:.0f} ms, worst {ordered[-1] * 1000:.0f} ms, n {len(ordered)}"
    )


def until(holds: Callable[[], bool], seconds: float = 60) -> None:
    """Wait until it is so. Raises `TimeoutError`."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError("it did not come about")
        time.sleep(0.002)


@contextmanager
def running_services(data: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    """Start web and worker; yield the URL and what waits until both answer."""
    import httpx  # noqa: PLC0415

    from workers.celery import app  # noqa: PLC0415

    port = _free_port()
    url = f"http://127.0.0.1:{port}"
    web = [sys.executable, "-m", "uvicorn", "controlplane.asgi:application", "--port", str(port)]
    worker = [
        sys.executable, "-m", "celery", "-A", "workers.celery", "worker", "--concurrency", "2",
        "--loglevel", "WARNING", "--without-gossip", "--without-mingle",
    ]  # fmt: skip
    with (data / "services.log").open("wb") as log:
        started = [subprocess.Popen(c, stdout=log, stderr=log) for c in (web, worker)]

        def ready() -> None:
            def answers() -> bool:
                try:
                    return httpx.get(f"{url}/healthz").is_success and bool(app.control.ping())
                except httpx.TransportError:
                    return False

            until(answers)

        try:
            yield url, ready
        except BaseException:
            print((data / "services.log").read_text()[-4000:])
            raise
        finally:
            for process in started:
                process.terminate()
            for process in started:
                process.wait(timeout=30)


@contextmanager
def private_redis(data: Path) -> Iterator[str]:
    """Yield the URL of a Redis of this benchmark alone."""
    port = _free_port()
    binary = shutil.which("redis-server") or "redis-server"
    command = [binary, "--port", str(port), "--save", "", "--dir", str(data)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        until(lambda: _listens(port))
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        process.terminate()
        process.wait(timeout=10)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
