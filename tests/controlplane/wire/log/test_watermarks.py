"""How the watermark of a stream advances: by both logs, and as the rule states it."""

import random
import time
from typing import Any, Final

import pytest
import redis
from hypothesis import example, given
from hypothesis import strategies as st

from controlplane.wire import keys
from controlplane.wire.log.redis_log import RedisLog, connect
from controlplane.wire.log.values import (
    NO_TIME,
    START,
    Block,
    IdempotencyToken,
    Log,
    LogEntry,
    LogPosition,
    Watermark,
)
from tests.controlplane.wire.log.conftest import Place
from tests.support.watermarks import Appended, watermarks

DELAY_MS: Final = 120_000
FUTURE_MS: Final = 3_600_000
NOW_MS: Final = 1_800_000_000_000
MINUTE: Final = 60_000

# Steps of the log's clock, and event times around it: near, behind, ahead, too far ahead.
STEPS: Final = st.sampled_from([0, 1, 1_000, DELAY_MS // 2, DELAY_MS, DELAY_MS + 1, 10 * DELAY_MS])
OFFSETS: Final = st.one_of(
    st.integers(-3 * DELAY_MS, 3 * DELAY_MS),
    st.sampled_from([-30 * DELAY_MS, -DELAY_MS, DELAY_MS, 25 * DELAY_MS, FUTURE_MS + 1]),
    st.none(),
)
RECORDS: Final = st.sampled_from([1, 2, 3, 100])


def marks_of(appends: list[Appended], delay_ms: int = DELAY_MS) -> list[int | None]:
    """Return the watermark before each append, and after the last one, by the product."""
    state, result = Watermark(), list[int | None]()
    for at_ms, newest_ms, records in appends:
        result.append(None if state.ms == NO_TIME else state.ms)
        state, reached = state.after(Block(records, b"", newest_ms, FUTURE_MS, delay_ms), at_ms)
        assert reached <= state.ms
    return [*result, None if state.ms == NO_TIME else state.ms]


@given(st.lists(st.tuples(STEPS, OFFSETS, RECORDS), max_size=30), st.sampled_from([0, 1, DELAY_MS]))
@example([(0, 3_000_000, 1), (1, 0, 1), (1, 3_000_000, 1), (DELAY_MS, 3_000_000, 1)], DELAY_MS)
def test_the_watermark_is_a_function_of_the_appends(
    steps: list[tuple[int, int | None, int]], delay_ms: int
) -> None:
    at_ms, appends = NOW_MS, list[Appended]()
    for step, offset, records in steps:
        at_ms += step
        appends.append(Appended(at_ms, None if offset is None else at_ms + offset, records))
    marks = marks_of(appends, delay_ms)
    assert marks == watermarks(appends, delay_ms)
    known = [mark for mark in marks if mark is not None]
    assert known == sorted(known)


def live(*offsets: int, step_ms: int = 1_000, records: int = 1) -> list[Appended]:
    """Return appends every `step_ms`, with event times by their distance from the clock."""
    return [
        Appended(NOW_MS + n * step_ms, NOW_MS + n * step_ms + offset, records)
        for n, offset in enumerate(offsets)
    ]


@pytest.mark.parametrize("records", [1, 1_000])
@pytest.mark.parametrize("minutes", [3, 20, 50, 59])
@pytest.mark.parametrize("place", [0, 1, 50])
def test_one_append_ahead_of_the_clock_makes_no_later_record_late(
    place: int, minutes: int, records: int
) -> None:
    appends = live(*[0] * 100)
    ahead = appends[place]
    assert ahead.newest_ms is not None
    appends[place] = Appended(ahead.at_ms, ahead.newest_ms + minutes * MINUTE, records)
    marks = marks_of(appends)
    for append, mark in zip(appends, marks, strict=False):
        assert append.newest_ms is not None
        assert mark is None or append.newest_ms >= mark - DELAY_MS
    assert marks[-1] == appends[-1].newest_ms, "and the others advance it"


@pytest.mark.parametrize("step_ms", [1_000, DELAY_MS, DELAY_MS + 1, 10 * DELAY_MS])
def test_two_appends_ahead_within_the_delay_make_no_later_record_late(step_ms: int) -> None:
    """Also of a stream whose appends are more than the delay apart, each of which waits."""
    appends = live(*[0] * 100, step_ms=step_ms)
    at_ms = appends[50].at_ms
    appends[51:51] = [Appended(at_ms + n, at_ms + 50 * MINUTE) for n in (1, 2)]
    marks = marks_of(appends)
    for append, mark in zip(appends, marks, strict=False):
        assert append.newest_ms is not None
        assert mark is None or append.newest_ms >= mark - DELAY_MS


def test_a_source_whose_clock_is_ahead_does_not_silence_the_others() -> None:
    """It appends as often as all others together, for hours."""
    appends = live(*[0, 50 * MINUTE] * 5_000)
    marks = marks_of(appends)
    assert all(
        mark is None or append.at_ms >= mark - DELAY_MS
        for append, mark in zip(appends, marks, strict=False)
    )


@pytest.mark.parametrize("place", [1, 50])
@pytest.mark.parametrize("ahead_ms", [50 * MINUTE, 30 * 24 * 60 * MINUTE])
def test_one_record_ahead_of_a_backlog_makes_no_later_record_late(
    place: int, ahead_ms: int
) -> None:
    """The backlog is older than the clock by more than the record is ahead of it."""
    then = NOW_MS - 40 * 24 * 60 * MINUTE
    appends = [Appended(NOW_MS + n, then + 1_000 * n) for n in range(100)]
    appends[place] = Appended(NOW_MS + place, then + ahead_ms)
    marks = marks_of(appends)
    assert marks[-1] == then + 99_000
    assert all(mark is None or mark <= then + 99_000 for mark in marks)


def test_the_second_append_after_a_gap_confirms_the_first() -> None:
    """A stream that was silent for six hours continues; the third append has its watermark."""
    gap = 6 * 60 * MINUTE
    appends = live(0, 0) + [a._replace(at_ms=a.at_ms + gap, newest_ms=(a.newest_ms or 0) + gap)
                            for a in live(0, 0, 0)]  # fmt: skip
    marks = marks_of(appends)
    assert marks[2:] == [NOW_MS + 1_000, NOW_MS + 1_000, NOW_MS + gap + 1_000,
                         NOW_MS + gap + 2_000]  # fmt: skip


def test_three_records_of_an_append_confirm_each_other() -> None:
    then = NOW_MS - 10 * 60 * MINUTE
    appends = [Appended(NOW_MS, then, 1), Appended(NOW_MS + 1, then + 60 * MINUTE, 3)]
    assert marks_of(appends) == [None, then, then + 60 * MINUTE]


def test_a_stream_whose_times_are_all_ahead_advances_after_the_delay() -> None:
    """As with a zone that was read as UTC: from then on every append advances it."""
    appends = live(*[40 * MINUTE] * 200)
    marks = marks_of(appends)
    first = next(n for n, mark in enumerate(marks) if mark is not None)
    assert first == DELAY_MS // 1_000 + 1
    assert marks[first:] == [append.newest_ms for append in appends[first - 1 :]]


def entries(log: Log, stream: int) -> list[LogEntry]:
    end = log.position_after(LogPosition(START, 0), 10**9)
    return log.read_streams([stream], START, end.position).get(stream, [])


@pytest.mark.parametrize("seed", range(4))
def test_both_logs_advance_it_as_the_rule_states(place: Place, seed: int) -> None:
    """Also from the middle on, by another reader."""
    rng, log = random.Random(seed), place.open()
    delay_ms = rng.choice((0, 2, DELAY_MS))
    near = (0, 1, delay_ms, delay_ms + 5, 5 * MINUTE, 30 * MINUTE, FUTURE_MS + MINUTE)
    given = []
    for _ in range(80):
        offset = rng.choice((-1, 1)) * rng.choice(near)
        newest = None if rng.random() < 0.1 else round(time.time() * 1000) + offset
        given.append(Block(rng.choice((1, 2, 3, 50)), b"a", newest, FUTURE_MS, delay_ms))
    cuts = [LogPosition(START, 0)]
    for n, block in enumerate(given):
        log.append({1: block, 2: Block(1, b"b", 5)})
        if n % 20 == 19:
            cuts.append(log.position_after(cuts[-1], 10**9))
    read = entries(log, 1)
    appends = [
        Appended(entry.appended_ms, block.newest_ms, block.records)
        for entry, block in zip(read, given, strict=True)
    ]
    expected = watermarks(appends, delay_ms, FUTURE_MS)
    assert [entry.mark_ms for entry in read] == expected[:-1]
    reached = None
    for entry, after in zip(read, expected[1:], strict=True):
        if entry.newest_ms != NO_TIME:
            reached = entry.newest_ms if reached is None else max(reached, entry.newest_ms)
        assert reached == after, "closes windows as far as the next append does"
    later = place.open().read_streams([1], cuts[1].position, cuts[-1].position)[1]
    assert later == read[20:]
    assert log.head([1]).newest == ({} if expected[-1] is None else {1: expected[-1]})


@pytest.fixture
def log_in_redis(redis_client: "redis.Redis", redis_server: str) -> RedisLog:
    return RedisLog(connect(redis_server), "c")


def test_a_stretch_of_time_confirms_a_time_ahead(
    log_in_redis: RedisLog, redis_client: "redis.Redis"
) -> None:
    """The clock of the log, not that of the producer; positions do not go back."""
    log = log_in_redis
    now_ms = int(log.append({1: Block(1, b"a", None)}).partition("-")[0])
    ahead = now_ms + 30 * MINUTE

    def append(newest_ms: int, clock_ms: int) -> tuple[int, int]:
        rows: Any = redis_client.xrevrange(keys.index_key("c"), count=1)
        fields = rows[0][1]
        redis_client.xadd(keys.index_key("c"), fields, id=f"{now_ms + clock_ms}-900000")
        answer = log.append({1: Block(1, b"a", newest_ms)})
        assert answer.watermarks is not None
        return answer.watermarks[1]

    start = 10 * MINUTE
    assert append(ahead, start)[1] == now_ms
    assert append(ahead + 5_000, start + DELAY_MS - 1)[1] == now_ms
    assert append(ahead + 6_000, start + DELAY_MS)[1] == ahead + 6_000
    assert append(now_ms + 20 * MINUTE, 20 * MINUTE)[0] == ahead + 6_000


def test_the_answer_has_the_watermarks_also_of_a_repeated_append(log_in_redis: RedisLog) -> None:
    log = log_in_redis
    log.append({1: Block(1, b"a", 50)})
    token = IdempotencyToken("p", 1)
    blocks = {1: Block(1, b"b", 90), 2: Block(1, b"c", 7)}
    first = log.append(blocks, token)
    log.append({1: Block(1, b"d", 400)})
    assert first.watermarks == {1: (50, 90), 2: (NO_TIME, 7)}
    again = log.append(blocks, token)
    assert (again, again.watermarks) == (first, first.watermarks)
    end = log.position_after(LogPosition(START, 0), 10**9)
    log.append({2: Block(1, b"e" * 10, 8)})
    for _ in range(10):
        log.append({1: Block(200, b"f", 500)})
    log.mark_committed(log.position_after(end, 10**9))
    forgotten = log.append(blocks, token)
    assert (forgotten, forgotten.watermarks) == (first, None)
