"""One cluster's driver is brought to what is wanted: real processes, real Redis, a hand's clock."""

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import inf
from pathlib import Path

import psutil
import pytest
import redis

from controlplane.child_processes import trees
from controlplane.processes.runtime import checks
from controlplane.wire.log.redis_log import RedisLog
from controlplane.wire.log.values import Block
from tests.controlplane.processes.runtime.waiting import is_gone, wait_for
from tests.support.redis_server import running_redis
from workers.agent.causes import Death
from workers.agent.driver import MARK, DriverSpec, Site
from workers.agent.heartbeats import Heartbeat, Observation, Observer, Unknown
from workers.agent.keeper import LONGEST_S, BackOff, Keeper
from workers.agent.progress import Report, Timeouts

ROOT = Path(__file__).resolve().parents[3]
SPEC = DriverSpec("sf", nodes=4, splits=2, trigger_ms=1000)


@pytest.fixture(scope="module")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the URL of a private Redis."""
    with running_redis(tmp_path_factory.mktemp("redis")) as url:
        yield url


class Bench:
    """A keeper, its stand-in driver's folder, and a clock that only the test moves."""

    def __init__(self, data: Path, url: str, **timeouts: float) -> None:
        self.folder = data
        self.client = redis.Redis.from_url(url)
        self.client.flushall()
        self.observer = Observer(self.client)
        self.deaths: list[Death] = []
        self.site = Site(data, url, {"PYTHONPATH": str(ROOT)})
        self.now = 1000.0
        self.keeper = self.new_keeper(**timeouts)

    def new_keeper(self, **timeouts: float) -> Keeper:
        """Return a keeper as a new agent makes it: it knows nothing of drivers before."""
        return Keeper(
            "sf",
            self.site,
            self.command,
            self.observer.look,
            # The clock of the tests jumps.
            timeouts=Timeouts(**{"unobserved": inf, **timeouts}),
            backoff=BackOff(random.Random(7)),
            history=list(self.deaths),
            died=self.deaths.append,
        )

    def heartbeat(self) -> Heartbeat | None:
        """Return the heartbeat in Redis."""
        return self.observer.look("sf").beat

    def command(self, spec: DriverSpec, site: Site) -> list[str]:
        """Return the stand-in's command line."""
        program = ROOT / "tests" / "workers" / "agent" / "agent_driver.py"
        return [sys.executable, str(program), site.redis_url, spec.cluster, str(self.folder)]

    def step(self, wanted: DriverSpec | None = SPEC, seconds: float = 0.0) -> Report:
        """Move the clock and take a step."""
        self.now += seconds
        return self.keeper.step(wanted, self.now)

    def until(self, state: str, wanted: DriverSpec | None = SPEC) -> Report:
        """Step, the clock standing still, until the keeper reports `state`."""
        found: list[Report] = []

        def reached() -> bool:
            found.append(self.step(wanted))
            return found[-1].state == state

        wait_for(reached)
        return found[-1]

    def finish_batch(self, version: int = 0) -> None:
        """Do what a driver does at the end of its first batch, which the keeper then sees."""
        row = json.dumps({"batch": 1, "version": version})
        self.client.xadd("weir:{sf}:telemetry", {"t": row})
        self.until("running")

    def next_beat(self) -> None:
        """Return once the driver beat again."""
        last = self.heartbeat()
        wait_for(lambda: self.heartbeat() != last)

    def started(self) -> list[int]:
        """Return the ids of the drivers that ever started."""
        file = self.folder / "started"
        return [int(line) for line in file.read_text().split()] if file.exists() else []

    def tree(self) -> list[psutil.Process]:
        """Return every living process of drivers on this checkpoint."""
        return trees.with_environment(MARK, str(self.site.checkpoint("sf")))


MakeBench = Callable[..., Bench]


@pytest.fixture
def make_bench(tmp_path: Path, redis_url: str) -> Iterator[MakeBench]:
    """Return a maker of a bench; its processes end with the test."""
    made: list[Bench] = []

    def make(**timeouts: float) -> Bench:
        made.append(Bench(tmp_path, redis_url, **timeouts))
        return made[-1]

    yield make
    for bench in made:
        assert trees.kill_all(bench.tree)
        bench.client.close()


def test_a_wanted_driver_is_started_and_seen_running(make_bench: MakeBench) -> None:
    """Running is what its own heartbeat says, not that a process exists."""
    bench = make_bench()
    assert bench.step() == Report("starting", "", "start")
    assert bench.until("running") == Report("running")
    assert bench.started() == [bench.keeper.pid]


def test_nothing_wanted_starts_nothing(make_bench: MakeBench) -> None:
    """A stopped cluster costs nothing."""
    bench = make_bench()
    assert bench.step(None) == Report("stopped")
    assert bench.started() == []


def test_a_stop_ends_the_whole_tree(make_bench: MakeBench) -> None:
    """The JVM is in a session of its own here, as Spark's Python daemon is in a group."""
    bench = make_bench()
    bench.until("running")
    tree = bench.tree()
    assert len(tree) == 2
    bench.until("stopped", wanted=None)
    assert all(is_gone(process.pid) for process in tree)


def test_a_deaf_driver_is_killed_when_patience_ends(make_bench: MakeBench) -> None:
    """Stop means stop, even for a hanging Spark."""
    bench = make_bench(ending=15.0)
    (bench.folder / "deaf").touch()
    bench.until("running")
    pid = bench.started()[0]
    assert bench.step(None).detail == "ending"
    assert bench.step(None, seconds=14).detail == "ending"
    assert not is_gone(pid)
    assert bench.step(None, seconds=2).state == "stopped"
    assert is_gone(pid)


def test_a_dead_driver_is_restarted_after_a_pause_and_says_why(make_bench: MakeBench) -> None:
    """The last error line is what an operator needs first."""
    bench = make_bench()
    bench.until("running")
    (bench.folder / "die").touch()
    failed = bench.until("failed")
    assert failed.detail.startswith("ValueError: the state store is gone (restart 1 in 0 s)")
    assert bench.step(seconds=0).detail == "start attempt 2"
    bench.until("running")
    assert len(set(bench.started())) == 2
    assert len(bench.tree()) == 2


def test_a_minute_of_health_forgets_earlier_deaths(make_bench: MakeBench) -> None:
    """A death a day is not a driver that keeps dying."""
    bench = make_bench()
    bench.until("running")
    (bench.folder / "die").touch()
    assert "restart 1" in bench.until("failed").detail
    bench.step(seconds=2)
    bench.until("running")
    bench.next_beat()
    assert bench.step(seconds=61).state == "running"
    (bench.folder / "die").touch()
    assert "restart 1" in bench.until("failed").detail


def test_an_early_second_death_is_counted(make_bench: MakeBench) -> None:
    """Otherwise a driver that fails at its first batch would restart every second for ever."""
    bench = make_bench()
    for number in (1, 2):
        bench.until("running")
        (bench.folder / "die").touch()
        assert f"restart {number}" in bench.until("failed").detail
        bench.step(seconds=10)


def test_a_silent_driver_is_degraded_then_killed_and_restarted(make_bench: MakeBench) -> None:
    """A driver that hangs keeps its process: only the heartbeat tells."""
    bench = make_bench()
    bench.until("running")
    (bench.folder / "mute").touch()
    wait_for((bench.folder / "muted").exists)
    first = bench.started()[0]
    wait_for(lambda: bench.step(seconds=20).detail == "no heartbeat for 20 s")
    assert not is_gone(first)
    killed = bench.step(seconds=45)
    assert killed.state == "failed"
    assert "no heartbeat for 65 s: killed" in killed.detail
    assert is_gone(first)
    (bench.folder / "mute").unlink()
    bench.step(seconds=2)
    bench.until("running")


def test_the_heartbeat_of_a_dead_driver_is_not_taken_for_the_new_one(
    make_bench: MakeBench,
) -> None:
    """Its hash stays in Redis for half a minute."""
    bench = make_bench()
    bench.client.hset("weir:{sf}:driver", mapping={"pid": 1, "state": "running", "beat_ms": 5})
    (bench.folder / "mute").touch()
    bench.step()
    assert bench.step(seconds=5).state == "starting"


def test_a_driver_that_never_beats_is_killed_in_the_end(make_bench: MakeBench) -> None:
    """A JVM that hangs while starting."""
    bench = make_bench(start=180.0)
    (bench.folder / "mute").touch()
    bench.step()
    assert bench.step(seconds=170).state == "starting"
    killed = bench.step(seconds=11)
    assert killed.code == "slow-start"
    assert "nothing has changed for 181 s: killed" in killed.detail


def test_a_driver_starts_until_its_first_batch_has_finished(make_bench: MakeBench) -> None:
    """Its heartbeat reports that Spark runs, long before any routing is applied."""
    bench = make_bench()
    bench.client.set("weir:{sf}:route:latest", 1)
    bench.step()
    wait_for(lambda: (beat := bench.heartbeat()) is not None and beat.state == "running")
    bench.step()
    for _ in range(4):
        bench.next_beat()
        report = bench.step(seconds=100)
        assert (report.state, report.code) == ("starting", "start")
    bench.finish_batch(version=1)
    assert bench.started() == [bench.keeper.pid]


def test_a_redis_that_is_away_is_no_reason_to_kill(make_bench: MakeBench) -> None:
    """Nobody can tell then whether the driver beats."""
    bench = make_bench()
    bench.until("running")

    def away(_: str, __: str) -> Observation:
        raise Unknown("refused")

    bench.keeper._look = away
    report = Report("degraded", "Redis does not respond", "redis-away")
    assert bench.step(seconds=1000) == report
    assert not is_gone(bench.started()[0])


def test_changed_settings_restart_the_driver(make_bench: MakeBench) -> None:
    """The trigger interval is an argument of the driver."""
    bench = make_bench()
    bench.until("running")
    changed = replace(SPEC, trigger_ms=500)
    assert bench.step(changed).detail == "ending before a restart"
    bench.until("starting", changed)
    bench.until("running", changed)
    assert len(bench.started()) == 2


def test_what_a_killed_agent_left_is_ended_before_a_new_start(make_bench: MakeBench) -> None:
    """Never two drivers on one checkpoint: the orphan here ignores SIGTERM and beats on."""
    bench = make_bench()
    (bench.folder / "deaf").touch()
    bench.until("running")
    orphans = bench.tree()
    bench.keeper = bench.new_keeper()
    assert bench.step().state == "starting"
    assert all(is_gone(process.pid) for process in orphans)
    bench.until("running")
    assert len(bench.tree()) == 2


def test_a_process_of_another_checkpoint_is_left_alone(make_bench: MakeBench) -> None:
    """Two Weirs on one machine have clusters of the same name."""
    bench = make_bench()
    other = subprocess.Popen(["sleep", "600"], env={**os.environ, MARK: "/another/checkpoint/sf"})
    bench.step()
    bench.until("stopped", wanted=None)
    assert other.poll() is None
    other.send_signal(signal.SIGKILL)
    other.wait()


def test_a_driver_that_cannot_be_started_is_tried_again(make_bench: MakeBench) -> None:
    """Say, a disk that is full when the log is opened."""
    bench = make_bench()
    bench.keeper._command = lambda *_: ["/no/such/program"]
    report = bench.step()
    assert report.state == "failed"
    assert "cannot be started" in report.detail


def test_pauses_double_to_a_minute_with_jitter() -> None:
    """Several drivers that died of one cause do not come back at one moment."""
    backoff = BackOff(random.Random(3))
    pauses = [backoff.next_delay() for _ in range(10)]
    assert pauses.pop(0) == 0
    for pause, middle in zip(pauses, [1, 2, 4, 8, 16, 32, 60, 60, 60], strict=True):
        assert 0.75 * middle <= pause <= 1.25 * min(middle, LONGEST_S)
    assert len(set(pauses)) == 9
    backoff.reset()
    assert backoff.next_delay() == 0


def test_records_that_nobody_reads_end_the_driver_with_the_reason_kept(
    make_bench: MakeBench,
) -> None:
    """It beats on: only the backlog shows that it hangs."""
    bench = make_bench()
    bench.until("running")
    bench.finish_batch()
    RedisLog(bench.client, "sf").append({1: Block(7, b"x", 5)})
    bench.step()
    first = bench.started()[0]
    bench.next_beat()
    stuck = bench.step(seconds=20)
    assert (stuck.state, stuck.code) == ("stuck", "no-progress")
    assert "7 records unread" in stuck.detail
    bench.next_beat()
    killed = bench.step(seconds=41)
    assert (killed.state, killed.code) == ("failed", "no-progress")
    assert is_gone(first)
    (death,) = bench.deaths
    assert (death.cause, death.unread, death.exit_code) == ("no-progress", 7, None)


def test_a_jvm_that_stops_answering_ends_the_driver(make_bench: MakeBench) -> None:
    """Without a record to read: its answers are all that shows it."""
    bench = make_bench()
    (bench.folder / "jvm").write_text("5")
    bench.until("running")
    bench.next_beat()
    assert bench.step(seconds=30).code == "jvm-silent"
    bench.next_beat()
    assert "the JVM has not responded for 61 s: killed" in bench.step(seconds=31).detail


def test_the_third_death_of_one_cause_is_a_crash_loop(make_bench: MakeBench) -> None:
    """Its page names the cause and what to do, also while the next attempt starts."""
    bench = make_bench()
    for _ in range(2):
        bench.until("running")
        (bench.folder / "die").touch()
        bench.until("failed")
        bench.step(seconds=10)
    bench.until("running")
    (bench.folder / "die").touch()
    loop = bench.until("crash loop")
    assert "has ended 3 times: ValueError: the state store is gone" in loop.detail
    assert "Read the driver's log" in loop.detail
    (bench.folder / "mute").touch()
    again = bench.step(seconds=10)
    assert (again.state, again.code) == ("crash loop", "exit")
    assert bench.step(seconds=1) == again
    # An agent that is started anew reads the deaths of the last hour.
    bench.keeper = bench.new_keeper()
    assert bench.step().state == "crash loop"


def test_a_driver_that_redis_ended_names_redis_whatever_its_log_says(make_bench: MakeBench) -> None:
    """A traceback has many lines, and a full disk takes none."""
    bench = make_bench()
    bench.until("running")
    bench.client.config_set("maxmemory", "1")
    try:
        (bench.folder / "die").touch()
        bench.until("failed")
    finally:
        bench.client.config_set("maxmemory", "0")
    assert bench.deaths[-1].cause == "redis-memory"
    # From Redis itself, or from the driver's log if the driver wrote once more before its end.
    assert "memory" in bench.deaths[-1].detail


def test_a_full_disk_is_the_cause_of_an_end_without_another(
    make_bench: MakeBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = make_bench()
    bench.until("running")
    monkeypatch.setattr(checks, "FULL_BYTES", 1 << 60)
    (bench.folder / "die").touch()
    bench.until("failed")
    assert bench.deaths[-1].cause == "disk-full"
    assert str(bench.folder) in bench.deaths[-1].detail


def test_a_redis_without_memory_is_no_reason_to_kill(make_bench: MakeBench) -> None:
    """Neither the heartbeat nor a result can be written; both go on when there is room."""
    bench = make_bench()
    bench.until("running")
    bench.client.config_set("maxmemory", "1")
    try:
        report = bench.step(seconds=1000)
    finally:
        bench.client.config_set("maxmemory", "0")
    assert (report.state, report.code) == ("degraded", "redis-memory")
