"""Requests that fail while web processes of a running Weir are killed with -9, one after another.

    python -m benchmarks.availability.web_restart http://127.0.0.1:8000 --kills 4

Every request uses a connection of its own, as behind a proxy. A request that was in progress at the
killed process is counted apart: no server can answer it.
"""

import argparse
import os
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import httpx
import psutil

THREADS = 4
# Long enough for the restart of a web process on two busy cores.
BETWEEN_S = 25.0


@dataclass
class Load:
    """Requests of several threads; failures with the time of their start and end."""

    url: str
    stop: threading.Event = field(default_factory=threading.Event)
    durations_s: list[float] = field(default_factory=list)
    failures: list[tuple[float, float, str]] = field(default_factory=list)

    def run(self) -> None:
        while not self.stop.is_set():
            started = time.monotonic()
            try:
                httpx.get(self.url, timeout=30).raise_for_status()
                self.durations_s.append(time.monotonic() - started)
            except httpx.HTTPError as error:
                self.failures.append((started, time.monotonic(), repr(error)))


def web_processes(port: int) -> list[psutil.Process]:
    """Return the web processes that share the listening socket of a port."""
    return [
        row
        for row in psutil.process_iter(["cmdline"])
        if "controlplane.processes.runtime.web" in (row.info["cmdline"] or [])
        and row.environ().get("WEIR_PORT") == str(port)
    ]


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options of a command line, by default that of the process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--path", default="/login/")
    parser.add_argument("--kills", type=int, default=4)
    return parser.parse_args(arguments)


def main() -> None:
    arguments = parse_options()
    load = Load(arguments.url.rstrip("/") + arguments.path)
    threads = [threading.Thread(target=load.run, daemon=True) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    port, kills = urlsplit(arguments.url).port or 80, []
    for _ in range(arguments.kills):
        time.sleep(3)
        victim = min(web_processes(port), key=lambda row: row.create_time())
        kills.append(time.monotonic())
        os.kill(victim.pid, signal.SIGKILL)
        time.sleep(BETWEEN_S)
    load.stop.set()
    for thread in threads:
        thread.join()
    in_flight = [
        failure
        for failure in load.failures
        if any(failure[0] <= kill <= failure[1] for kill in kills)
    ]
    others = [failure for failure in load.failures if failure not in in_flight]
    print(f"requests {len(load.durations_s)}, kills {len(kills)}")
    print(f"failed in flight {len(in_flight)}, failed otherwise {len(others)}")
    print(f"longest response {max(load.durations_s):.2f} s")
    for failure in others[:5]:
        print(failure)


if __name__ == "__main__":
    main()
