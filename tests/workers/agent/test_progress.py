"""Progress of batches against what there is to do, by a clock that the test moves."""

from dataclasses import replace

import pytest

from workers.agent import causes
from workers.agent.heartbeats import Heartbeat, Observation
from workers.agent.progress import Progress, Timeouts, behind

RUNS = Heartbeat(pid=1, state="running", error="", beat_ms=1, jvm_ms=1)
IDLE = Observation(RUNS, batch=7, version=3, routed=3, total=1000)


class Watch:
    """A driver that beats and whose JVM answers each second, unless the test says otherwise."""

    def __init__(self, seen: Observation = IDLE, *, starts: bool = False) -> None:
        """`starts`: it has not finished a batch yet."""
        self.progress, self.now, self.seen = Progress(Timeouts(), 0.0), 0.0, seen
        self.beats = self.answers = True
        if not starts:
            self.run(1, batch=seen.batch - 1).run(1, batch=seen.batch)

    def run(self, seconds: int, **changed: object) -> "Watch":
        """Let seconds pass with what is seen changed."""
        self.seen = replace(self.seen, **changed)  # type: ignore[arg-type]
        for _ in range(seconds):
            self.now += 1
            beat = self.seen.beat
            assert beat is not None
            beat = replace(
                beat, beat_ms=beat.beat_ms + self.beats, jvm_ms=beat.jvm_ms + self.answers
            )
            self.seen = replace(self.seen, beat=beat)
            self.progress.note(self.seen, self.now)
        return self

    def cause(self) -> tuple[str, bool] | None:
        """Return what is wrong, and whether that kills the driver."""
        wrong = self.progress.problem(self.now)
        return None if wrong is None else (wrong.cause, wrong.fatal)


def test_a_driver_without_work_may_rest() -> None:
    """Nothing was appended for an hour: no batch is right."""
    assert Watch().run(3600).cause() is None


def test_records_that_no_batch_reads_end_a_driver_that_beats() -> None:
    """The defect: 85 s of records at a hung Spark, and "running" throughout."""
    watch = Watch().run(100).run(30, unread=5)
    assert watch.cause() == (causes.NO_PROGRESS, False)
    assert watch.run(32).cause() == (causes.NO_PROGRESS, True)


def test_a_silent_jvm_is_noticed_without_any_work() -> None:
    """The heartbeat is Python's: it goes on over a stopped JVM."""
    watch = Watch().run(100)
    watch.answers = False
    assert watch.run(30).cause() == (causes.JVM_SILENT, False)
    assert watch.run(32).cause() == (causes.JVM_SILENT, True)


def test_a_routing_version_that_is_not_applied_is_work() -> None:
    """A batch runs for it although there is no record."""
    assert Watch().run(10).run(62, routed=4).cause() == (causes.NO_PROGRESS, True)


def test_the_clock_starts_when_there_is_something_to_do() -> None:
    """An hour without records says nothing about the first second with some."""
    assert Watch().run(3600).run(10, unread=1).cause() is None


@pytest.mark.parametrize("sign", ["steps", "batch"])
def test_each_finished_step_is_progress(sign: str) -> None:
    """A batch of ten minutes that goes on is not killed, and neither is one after the other."""
    watch = Watch().run(2, unread=10_000_000)
    for number in range(20):
        watch.run(40, **{sign: 100 + number})
    assert watch.cause() == (causes.NO_PROGRESS, False)
    assert watch.run(2, **{sign: 999}).cause() is None


def test_a_batch_that_never_ends_is_ended() -> None:
    """Whatever steps it finishes."""
    watch = Watch().run(2, unread=10_000_000)
    for number in range(181):
        watch.run(10, steps=100 + number)
    assert watch.cause() == (causes.SLOW_BATCH, True)


STARTS = replace(RUNS, state="starting", jvm_ms=0)


def starting(**changed: object) -> Watch:
    """Return a driver that has just started, with records to read."""
    return Watch(replace(IDLE, beat=STARTS, unread=9, **changed), starts=True)  # type: ignore[arg-type]


def test_a_start_that_changes_nothing_for_ten_minutes_hangs() -> None:
    """Its Python process beats on."""
    watch = starting()
    watch.answers = False
    assert watch.run(600).cause() is None
    assert watch.run(2).cause() == (causes.SLOW_START, True)


@pytest.mark.parametrize("silent", [{"beats"}, {"answers"}, {"beats", "answers"}])
def test_a_starved_start_is_not_judged_by_a_minute(silent: set[str]) -> None:
    """Nothing is heard of it for five minutes, as many others start on this machine."""
    watch = starting().run(1, beat=replace(STARTS, jvm_ms=1))
    for name in silent:
        setattr(watch, name, False)
    assert watch.run(300).cause() is None
    assert not watch.progress.runs


def signs() -> list[dict[str, object]]:
    """Return what a driver shows until its first batch has finished, in its order."""
    answered = replace(STARTS, jvm_ms=1)
    phases = [replace(answered, phase=text) for text in ("Initializing", "Processing new data")]
    beats: list[dict[str, object]] = [{"beat": beat} for beat in (STARTS, answered, *phases)]
    return [*beats, {"steps": 1}, {"steps": 2}]


def test_each_change_of_a_start_is_progress() -> None:
    """25 minutes until the first batch, and another batch has an hour's time from then on."""
    watch = starting()
    for sign in signs():
        assert watch.run(250, **sign).cause() is None
        assert not watch.progress.runs
    watch.run(1, beat=RUNS, batch=8)
    assert watch.progress.runs
    assert watch.run(59).cause() == (causes.NO_PROGRESS, False)
    assert watch.run(2).cause() == (causes.NO_PROGRESS, True)


def test_a_start_that_never_finishes_a_batch_is_ended() -> None:
    """Whatever changes meanwhile."""
    watch = starting()
    for number in range(180):
        assert watch.run(10, steps=number).cause() is None
    assert watch.run(2).cause() == (causes.SLOW_START, True)


def test_a_cluster_whose_routing_is_not_applied_starts() -> None:
    """Spark reports that it runs: it waits for records, and no node has worked yet."""
    watch = Watch(replace(IDLE, batch=-1, version=0, routed=1), starts=True).run(120)
    assert watch.cause() is None
    assert not watch.progress.runs
    assert watch.run(1, batch=1, version=1).progress.runs


def test_the_first_batch_of_a_driver_without_work_is_a_start_too() -> None:
    """It was idle for an hour, and its workers start with the first record."""
    watch = Watch(starts=True).run(3600)
    assert watch.progress.runs
    assert watch.run(300, unread=5).cause() is None
    assert watch.run(302).cause() == (causes.SLOW_START, True)


def test_what_nobody_could_hear_is_excused() -> None:
    """Redis was away for ten minutes."""
    watch = Watch().run(10, unread=5)
    watch.now += 600
    watch.progress.reset(watch.now)
    assert watch.cause() is None


def test_an_agent_that_was_stopped_ends_no_driver() -> None:
    """It and the driver continue at the same time; the driver's next beat is two seconds away."""
    watch = Watch().run(100).run(5, unread=5)
    watch.beats = watch.answers = False
    watch.now += 90
    watch.run(1)
    assert watch.cause() is None
    assert watch.run(40).cause() == (causes.NO_HEARTBEAT, False)
    assert watch.run(15).cause() == (causes.NO_HEARTBEAT, True)


def test_a_backlog_is_told_with_rate_and_end() -> None:
    """10,000 records/s are read, 4,000/s come: 6,000/s less each second."""
    watch = Watch(replace(IDLE, unread=600_000), starts=True)
    for number in range(30):
        watch.run(1, batch=8 + number, total=watch.seen.total + 10_000,
                  unread=(watch.seen.unread or 0) - 6_000)  # fmt: skip
    report = behind(watch.progress)
    assert report is not None
    assert (report.state, report.code) == ("catching up", "backlog")
    assert report.detail == "420,000 records unread, 10,000/s read, drained in about 70 s"


def test_a_backlog_that_grows_has_no_end() -> None:
    """The operator must know that waiting does not help."""
    watch = Watch(replace(IDLE, unread=600_000), starts=True)
    for number in range(30):
        watch.run(1, batch=8 + number, total=watch.seen.total + 1_000,
                  unread=(watch.seen.unread or 0) + 500)  # fmt: skip
    report = behind(watch.progress)
    assert report is not None
    assert "the backlog grows by 500/s" in report.detail


def test_the_records_of_one_trigger_are_no_backlog() -> None:
    """Between two batches there is always something."""
    watch = Watch()
    for number in range(30):
        watch.run(1, batch=8 + number, total=watch.seen.total + 1_000, unread=1_000)
    assert behind(watch.progress) is None
