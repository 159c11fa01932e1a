"""The agent keeps a spare, which becomes the next driver: real processes, a hand's clock."""

import os
import random
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from math import inf
from pathlib import Path

import psutil
import pytest
import redis

from controlplane.child_processes import trees
from controlplane.processes.runtime.beats import IDLE
from tests.controlplane.processes.runtime.waiting import is_gone, pid_in, wait_for
from tests.workers.agent.test_keeper import ROOT, SPEC
from workers.agent.driver import Driver, DriverSpec, Site
from workers.agent.heartbeats import Observer
from workers.agent.keeper import BackOff, Keeper
from workers.agent.progress import Timeouts
from workers.agent.spares import CALM_S, Spares

RUNNING, STARTING = "running", "starting"


class Agent:
    """What an agent has, for one cluster; `command` starts drivers that are not spares."""

    def __init__(self, data: Path, url: str) -> None:
        self.data, self.client = data, redis.Redis.from_url(url)
        self.client.flushall()
        self.site = Site(data, url, {"PYTHONPATH": str(ROOT)})
        self.now = 1000.0
        self.spares = self.new_spares()
        look = Observer(self.client).look
        self.keeper = Keeper(
            "sf", self.site, self.command, look, timeouts=Timeouts(unobserved=inf),
            backoff=BackOff(random.Random(7)), spare=self.spares.take,
        )  # fmt: skip

    def new_spares(self) -> Spares:
        """Return the spares of a new agent."""
        program = ROOT / "tests" / "workers" / "agent" / "spare_driver.py"
        return Spares(self.site, command=(sys.executable, str(program), str(self.data)))

    def command(self, spec: DriverSpec, site: Site) -> list[str]:
        program = ROOT / "tests" / "workers" / "agent" / "agent_driver.py"
        return [sys.executable, str(program), site.redis_url, spec.cluster, str(self.data)]

    def step(self, seconds: float, *states: str) -> None:
        """Move the clock, and let the agent see these states of clusters."""
        self.now += seconds
        self.spares.step({f"c{n}": state for n, state in enumerate(states)}, self.now)

    def processes(self) -> list[psutil.Process]:
        return trees.with_environment("WEIR_SPARES", str(self.data))

    def prepare(self) -> int:
        """Return the id of a ready spare."""
        self.step(0.0, RUNNING)
        self.step(CALM_S, IDLE)
        return pid_in(self.data / "ready")

    def started(self) -> list[int]:
        """Return the ids of the drivers that ever started."""
        file = self.data / "started"
        return [int(line) for line in file.read_text().split()] if file.exists() else []

    def start_driver(self) -> int:
        """Step until a further driver runs; return its id."""
        before = len(self.started())

        def is_there() -> bool:
            # Past the pause after a second death.
            self.now += 1.0
            self.keeper.step(SPEC, self.now)
            return len(self.started()) > before

        wait_for(is_there)
        return self.started()[-1]


@pytest.fixture
def agent(tmp_path: Path, redis_url: str) -> Iterator[Agent]:
    """An agent whose processes end with the test."""
    agent = Agent(tmp_path, redis_url)
    yield agent
    agent.keeper.kill()
    agent.spares.end()
    assert agent.processes() == []
    agent.client.close()


def test_a_killed_driver_is_replaced_by_the_spare(agent: Agent) -> None:
    first = agent.start_driver()
    spare = agent.prepare()
    log = agent.site.log("sf")
    log.write_text("what the first driver said\n")
    os.kill(first, signal.SIGKILL)
    assert agent.start_driver() == spare == agent.keeper.pid
    assert log.read_text().startswith("what the first driver said\n")
    (agent.data / "die").touch()
    wait_for(lambda: "the state store is gone" in log.read_text())
    # Its own end is that of any driver: the next one is a process of its own.
    assert agent.start_driver() not in (first, spare)
    assert agent.processes() == [], "the child of the spare has ended with it"


def test_it_starts_when_all_clusters_have_run_for_a_while(agent: Agent) -> None:
    agent.step(0.0, RUNNING, STARTING)
    agent.step(10 * CALM_S, RUNNING, STARTING)
    agent.step(0.0, RUNNING, RUNNING)
    agent.step(CALM_S - 1, RUNNING, RUNNING)
    assert agent.processes() == []
    agent.step(1.0, RUNNING, "stopped")
    assert len(agent.processes()) == 1
    agent.step(1.0, "stopped")
    assert agent.processes() == [], "no cluster runs"


def test_a_killed_spare_harms_nothing(agent: Agent) -> None:
    pid = agent.prepare()
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: is_gone(pid))
    assert agent.start_driver() != pid
    agent.step(1.0, RUNNING)
    agent.step(CALM_S, RUNNING)
    assert agent.processes() == [], "the next one is not started at once"


def test_a_spare_that_dies_as_it_is_taken_is_no_driver(agent: Agent) -> None:
    agent.prepare()
    spare = agent.spares.take(SPEC)
    assert spare is not None
    spare.process.kill()
    wait_for(lambda: is_gone(spare.process.pid))
    with pytest.raises(BrokenPipeError):
        Driver(SPEC, agent.site, agent.command, lambda _: spare)
    assert agent.processes() == []


def test_a_driver_without_its_logins_takes_no_spare(agent: Agent) -> None:
    def away(_: str) -> str:
        raise OSError("away")

    spare = agent.prepare()
    with pytest.raises(OSError, match="away"):
        Driver(SPEC, replace(agent.site, results_url=away), agent.command, agent.spares.take)
    assert agent.start_driver() == spare


def test_executors_of_other_machines_have_no_spare(agent: Agent) -> None:
    spare = agent.prepare()
    assert agent.spares.take(replace(SPEC, master="spark://host:7077")) is None
    assert agent.start_driver() == spare


def test_no_other_user_sees_the_redis_of_a_spare(agent: Agent) -> None:
    """A command line is everybody's; the environment never has it."""
    spare = agent.prepare()
    assert agent.start_driver() == spare
    process = psutil.Process(spare)
    shown = [*process.cmdline(), *process.environ().values()]
    assert not [text for text in shown if agent.site.redis_url in text]


def test_a_new_agent_ends_what_earlier_spares_became(agent: Agent) -> None:
    spare = agent.prepare()
    assert agent.start_driver() == spare
    agent.new_spares()
    assert agent.processes() == []
