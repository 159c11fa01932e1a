"""The agent's loop, and the agent as a process of its own against a real database."""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis

from controlplane.processes.runtime.beats import cluster_states, last_beat_ms
from controlplane.processes.runtime.leases import Leases
from tests.controlplane.processes.runtime.waiting import is_gone, wait_for
from tests.support.redis_server import running_redis
from workers.agent.agent import Agent
from workers.agent.driver import DriverSpec, Site, pipeline_command, secret_environment
from workers.agent.heartbeats import Observer
from workers.agent.keeper import Keeper
from workers.agent.progress import Progress, Report

WAITS = DriverSpec("sf", nodes=4, splits=2, trigger_ms=1000)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator["redis.Redis"]:
    """Yield a client of a private Redis."""
    with (
        running_redis(tmp_path_factory.mktemp("redis")) as url,
        redis.Redis.from_url(url) as client,
    ):
        yield client


class Desk:
    """What the agent asks and what it is told."""

    def __init__(self) -> None:
        self.wanted: dict[str, DriverSpec | None] = {}
        self.written: dict[str, Report] = {}

    def write(self, reports: Mapping[str, Report], _: Mapping[str, Progress]) -> None:
        """Keep the newest report of each cluster."""
        self.written |= reports


@pytest.fixture
def desk() -> Desk:
    """Return an empty desk."""
    return Desk()


@pytest.fixture
def agent(client: "redis.Redis", desk: Desk, tmp_path: Path) -> Iterator[Agent]:
    """Yield an agent whose drivers only sleep."""
    client.flushall()
    agent = agent_of("a", client, desk, tmp_path)
    yield agent
    agent.end(patience_s=5)


def agent_of(name: str, client: "redis.Redis", desk: Desk, data: Path) -> Agent:
    """Return the agent of a host."""
    site = Site(data / name, "redis://unused", {})

    def keeper(cluster: str) -> Keeper:
        return Keeper(cluster, site, lambda *_: ["sleep", "600"], Observer(client).look)

    leases = Leases(url_of(client), "agent", name, term_s=60.0, alone_s=60.0)
    return Agent(client, leases, lambda: desk.wanted, desk.write, keeper)


def url_of(client: "redis.Redis") -> str:
    return f"redis://127.0.0.1:{client.connection_pool.connection_kwargs['port']}/0"


def pids(agent: Agent) -> dict[str, int | None]:
    """Return the drivers of an agent, which run, by cluster."""
    return {slug: keeper.pid for slug, keeper in agent._keepers.items() if keeper.pid}


def expire(client: "redis.Redis", holder: str) -> None:
    """End the terms of a holder's leases, as time does where it is cut off from Redis."""
    client.zrem("weir:members:agent", f"{holder} -")
    rows: Any = client.hgetall("weir:leases:agent")
    for name, row in rows.items():
        by, epoch, _ = row.decode().split()
        if by == holder:
            client.hset("weir:leases:agent", name, f"{by} {epoch} 1")


@pytest.fixture
def hosts(client: "redis.Redis", desk: Desk, tmp_path: Path) -> Iterator[list[Agent]]:
    """Yield the agents of three hosts."""
    client.flushall()
    agents = [agent_of(name, client, desk, tmp_path) for name in "abc"]
    for agent in agents:
        agent.tick(0.0)
    yield agents
    for agent in agents:
        agent.end(patience_s=5)


def test_each_tick_beats_and_tells_where_every_cluster_stands(
    agent: Agent, client: "redis.Redis", desk: Desk
) -> None:
    """The runner and the pages read both."""
    desk.wanted = {"sf": WAITS, "ny": None}
    agent.tick(1.0)
    assert desk.written == {
        "sf": Report("starting", "", "start"),
        "ny": Report("stopped"),
    }
    assert cluster_states(client) == {"sf": "starting", "ny": "stopped"}
    assert last_beat_ms(client, "agent") is not None


def test_the_driver_of_a_deleted_cluster_is_ended(
    agent: Agent, client: "redis.Redis", desk: Desk
) -> None:
    """Nobody would ever stop it otherwise; and its row is not written any more."""
    desk.wanted = {"sf": WAITS}
    agent.tick(1.0)
    desk.wanted = {}
    desk.written.clear()
    for now in (2.0, 100.0, 101.0):
        agent.tick(now)
    assert cluster_states(client) == {}
    assert desk.written == {}


def test_the_end_of_the_agent_ends_its_drivers_and_says_so(agent: Agent, desk: Desk) -> None:
    """A cluster that nobody looks after must not look as if it ran."""
    desk.wanted = {"sf": WAITS}
    agent.tick(1.0)
    agent.end(patience_s=5)
    assert desk.written == {"sf": Report("stopped", "the agent has ended")}


def test_three_hosts_share_clusters_and_a_cut_off_one_is_replaced(
    hosts: list[Agent], client: "redis.Redis", desk: Desk
) -> None:
    """Each cluster has one driver at any time; who lost a lease says nothing about the cluster."""
    desk.wanted = {f"c{number}": replace(WAITS, cluster=f"c{number}") for number in range(6)}
    for agent in hosts:
        agent.tick(1.0)
    assert [len(pids(agent)) for agent in hosts] == [2, 2, 2]
    cut, *others = hosts
    lost = pids(cut)
    kept = {slug: pid for agent in others for slug, pid in pids(agent).items()}
    expire(client, "a")
    for agent in others:
        # They keep what they have, and share what is free.
        agent.tick(2.0)
    assert pids(cut) == lost
    desk.written.clear()
    cut.tick(3.0)
    assert pids(cut) == {}
    assert all(is_gone(pid) for pid in lost.values() if pid)
    assert desk.written == {}
    now = {slug: pid for agent in others for slug, pid in pids(agent).items()}
    assert now.keys() == desk.wanted.keys()
    assert kept.items() <= now.items()


def test_a_lost_driver_is_killed_while_the_loop_waits(
    hosts: list[Agent], client: "redis.Redis", desk: Desk
) -> None:
    """As for a database that does not answer: the loop does not get on."""
    desk.wanted = {"sf": WAITS}
    first = hosts[0]
    first.tick(1.0)
    (pid,) = pids(first).values()
    assert pid is not None
    expire(client, "a")
    hosts[1].tick(2.0)
    ended = threading.Event()
    thread = threading.Thread(target=first.watch, args=(ended,))
    thread.start()
    try:
        wait_for(lambda: is_gone(pid))
    finally:
        ended.set()
        thread.join()


def test_lost_drivers_are_killed_at_the_same_time(agent: Agent, desk: Desk) -> None:
    """Also after an error: each of them may take longer than the margin of a lease."""
    desk.wanted = {slug: replace(WAITS, cluster=slug) for slug in ("sf", "ny")}
    agent.tick(1.0)
    assert len(pids(agent)) == 2
    both, errors, ended = threading.Barrier(2), [RuntimeError()], threading.Event()

    def kill(whole: Callable[[], None]) -> None:
        both.wait(60)
        whole()

    def renew() -> None:
        agent._leases._held = {}
        if errors:
            raise errors.pop()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(agent._leases, "renew", renew)
        for keeper in agent._keepers.values():
            patch.setattr(keeper, "kill", partial(kill, keeper.kill))
        thread = threading.Thread(target=agent.watch, args=(ended,))
        thread.start()
        try:
            wait_for(lambda: not pids(agent))
        finally:
            ended.set()
            thread.join()


@pytest.mark.parametrize("step", ["_prepare", "_hold"])
def test_no_driver_is_started_by_a_tick_that_outlasts_its_leases(
    agent: Agent, desk: Desk, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    desk.wanted = {"sf": WAITS}
    monkeypatch.setattr(agent, step, lambda *_: agent._leases._held.clear())
    agent.tick(1.0)
    assert pids(agent) == {}
    assert desk.written == {}
    monkeypatch.setattr(agent, step, lambda *_: None)
    agent.tick(2.0)
    assert pids(agent).keys() == {"sf"}


def test_the_clusters_of_an_agent_that_ends_are_free_at_once(
    hosts: list[Agent], desk: Desk
) -> None:
    desk.wanted = {"sf": WAITS}
    hosts[0].tick(1.0)
    hosts[1].tick(1.0)
    assert pids(hosts[1]) == {}
    hosts[0].end(patience_s=5)
    hosts[1].tick(2.0)
    assert pids(hosts[1]).keys() == {"sf"}


def test_a_change_is_logged_once(
    agent: Agent, desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    """A tick a second would fill the log."""
    desk.wanted = {"ny": None}
    with caplog.at_level(logging.INFO, "weir.agent"):
        agent.tick(1.0)
        agent.tick(2.0)
    logged = [record for record in caplog.records if record.name == "weir.agent"]
    assert [record.getMessage() for record in logged] == ["ny is stopped "]


def test_the_driver_is_started_as_the_pipeline_wants_it(tmp_path: Path) -> None:
    """The command line is the whole interface between agent and Spark application."""
    command = pipeline_command(WAITS, Site(tmp_path, "redis://h/0", {}))
    assert command[1:] == [
        "-m", "workers.pipeline", "--cluster", "sf",
        "--checkpoint", str(tmp_path / "checkpoints" / "sf-4"), "--nodes", "4", "--splits", "2",
        "--trigger-ms", "1000", "--master", "local[2]", "--max-records", "200000",
        "--max-batch-mb", "64",
    ]  # fmt: skip


def test_another_log_has_a_checkpoint_of_its_own(tmp_path: Path) -> None:
    """Its positions mean other places; login and options do not make it another."""
    places = []
    for url in ("kafka://b:9092/t", "kafka://me:pw@b:9092/t?lost=skip", "kafka://b:9092/u"):
        spec = replace(WAITS, log_url=url)
        command = pipeline_command(spec, Site(tmp_path, "redis://h/0", {}))
        assert secret_environment(spec, Site(tmp_path, "redis://h/0", {}))["WEIR_LOG_URL"] == url
        places.append(command[command.index("--checkpoint") + 1])
    assert places[0] == places[1] != places[2]
    assert all(place.startswith(str(tmp_path / "checkpoints" / "sf-4-")) for place in places)


def test_a_driver_on_a_cluster_is_told_what_its_executors_need(tmp_path: Path) -> None:
    """They must reach the checkpoint and the driver."""
    spec = replace(WAITS, master="spark://spark:7077")
    settings = "spark.executor.memory=2g spark.cores.max=8"
    site = Site(tmp_path, "redis://h/0", {}, Path("/shared"), "weir.example.org", settings)
    command = pipeline_command(spec, site)
    assert command[command.index("--checkpoint") + 1] == "/shared/sf-4"
    assert command[command.index("--master") :] == [
        "--master", "spark://spark:7077", "--max-records", "200000",
            "--max-batch-mb", "64", "--driver-host", "weir.example.org",
    ]  # fmt: skip
    assert secret_environment(spec, site)["WEIR_SPARK_CONF"] == settings
