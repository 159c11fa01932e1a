"""The time until another host runs a cluster after the one that ran it died or lost its network.

    python -m benchmarks.availability.takeover [--rounds N] [--hosts N] [--cold]

Hosts are namespaces of Linux with processes, names and networks of their own (root only), with an
agent each, which share a folder of checkpoints, Redis and database. Records are appended once a
second. In turn the host with the driver is killed (-9, all processes at once) or cut off from
Redis; afterwards it is started or connected again. Each time, the other hosts have a spare driver
that is ready; with `--cold` there is none. Prints seconds until another host has the lease, and
until its first batch is finished, and the load of the machine. At the end the windows must have
each record once; otherwise the benchmark fails.
"""

import argparse
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.support.hosts import Site, running_site

_EVERY_S: Final = 1.0
_LONGEST_S: Final = 400.0


def main() -> None:
    """Print the table."""
    options = parse_options()
    spare = {"WEIR_SPARE_DRIVER": "0" if options.cold else "1"}
    with (
        tempfile.TemporaryDirectory(prefix="weir-bench-") as folder,
        running_site(Path(folder) / "site", options.hosts) as site,
    ):
        for host in site.hosts:
            site.start_agent(host, **spare)
        with _appending(site):
            for number in range(options.rounds):
                for name in ("kill", "cut"):
                    _settle(site, is_spared=not options.cold)
                    print(number + 1, *_lose(site, name, spare), flush=True)
        _wait(lambda: site.is_read() and site.is_right(), site)
    print("done: all results right")


@contextmanager
def _appending(site: Site) -> Iterator[None]:
    ended = threading.Event()

    def append() -> None:
        while not ended.wait(_EVERY_S):
            site.send()

    thread = threading.Thread(target=append)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _settle(site: Site, *, is_spared: bool) -> None:
    """Wait until one host has a driver with finished batches, and the others a spare.

    An agent that knows no other has longer terms.
    """
    _wait(lambda: site.client.zcard("weir:members:agent") == len(site.hosts), site)
    before = len(site.telemetry())
    _wait(lambda: len(site.telemetry()) > before + 2 and site.owner() is not None, site)
    others = [host for host in site.hosts if host is not site.owner()]
    if is_spared:
        _wait(lambda: all(site.has_spare(host) for host in others), site)


def _lose(site: Site, name: str, environment: dict[str, str]) -> tuple[str, ...]:
    """Lose the host with the driver; return the columns of a row."""
    load = f"load {os.getloadavg()[0]:.1f}"
    lost = site.owner()
    assert lost is not None
    start = time.monotonic()
    (lost.kill if name == "kill" else lost.cut)()
    _wait(lambda: site.owner() not in (None, lost), site)
    held = f"lease {time.monotonic() - start:5.1f} s"
    before = len(site.telemetry())
    _wait(lambda: len(site.telemetry()) > before, site)
    finished = f"batch {time.monotonic() - start:5.1f} s"
    if name == "kill":
        site.start_agent(lost, **environment)
    else:
        lost.restore()
    return name, held, finished, load


def _wait(reached: Callable[[], bool], site: Site) -> None:
    deadline = time.monotonic() + _LONGEST_S
    while not reached():
        if time.monotonic() > deadline:
            raise SystemExit(f"waited in vain:\n{site.log.read_text()[-4000:]}")
        time.sleep(0.1)


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options of a command line, by default that of the process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="kills and cuts")
    parser.add_argument("--hosts", type=int, default=3)
    parser.add_argument("--cold", action="store_true", help="without spare drivers")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
