"""Three hosts with real agents: one is cut off, another dies; one Spark runs at any time."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from controlplane.child_processes.trees import is_alive
from tests.controlplane.processes.runtime.waiting import wait_for
from tests.support.driver import START_SECONDS
from tests.support.hosts import CAN_ISOLATE, Host, Site, running_site

pytestmark = [
    pytest.mark.nightly("spark"),
    pytest.mark.spark,
    pytest.mark.skipif(not CAN_ISOLATE, reason="only root creates namespaces"),
]


@contextmanager
def counted(site: Site) -> Iterator[set[tuple[str, ...]]]:
    """Yield the sets of hosts that ran Spark at the same time; several are an error."""
    seen, stop = set[tuple[str, ...]](), threading.Event()

    def look() -> None:
        while not stop.wait(0.05):
            seen.add(tuple(host.name for host in site.owners()))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
        assert thread.is_alive()
    finally:
        stop.set()
        thread.join()


def wait(site: Site, what: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not site.is_read():
        is_late = time.monotonic() > deadline or not any(host.is_up() for host in site.hosts)
        assert not is_late, f"{what}:\n{site.log.read_text()[-6000:]}"
        time.sleep(0.1)


def owner(site: Site) -> Host:
    (host,) = site.owners()
    return host


def test_a_host_that_is_cut_off_and_one_that_dies_are_replaced(tmp_path: Path) -> None:
    with running_site(tmp_path) as site:
        for host in site.hosts:
            site.start_agent(host, WEIR_SPARE_DRIVER="0")
        site.send()
        wait(site, "no batch")
        cut = owner(site)
        with counted(site) as seen:
            cut.cut()
            site.send()
            wait(site, "nobody took over from the host that was cut off")
            second = owner(site)
            assert second is not cut
            cut.restore()
            site.send()
            wait(site, "the host that came back interrupted the other")
            assert owner(site) is second
            second.kill()
            site.send()
            wait(site, "nobody took over from the host that died")
            assert owner(site) is not second
        assert all(len(names) <= 1 for names in seen), seen
        ran = {name for names in seen for name in names}
        assert ran == {host.name for host in site.hosts}, "each of three hosts"
        assert site.is_right()


def test_a_driver_whose_agent_hangs_is_shut_out(tmp_path: Path) -> None:
    """It runs on, and Redis refuses it; the next one waits for its lock of the checkpoint."""
    with running_site(tmp_path, 2) as site:
        for host in site.hosts:
            site.start_agent(host, WEIR_SPARE_DRIVER="0")
        site.send()
        wait(site, "no batch")
        first = owner(site)
        (agent,) = first.processes("workers.agent")
        (driver,) = first.processes("workers.pipeline")
        agent.suspend()
        wait_for(lambda: site.owner() not in (None, first), START_SECONDS)
        site.send()
        wait(site, "nobody took over")
        assert not is_alive(driver)
        agent.resume()
        site.send()
        wait(site, "the agent that continued interrupted the other")
        assert site.owner() not in (None, first)
        assert site.is_right()
