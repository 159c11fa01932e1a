"""What holds of every log, whatever it is kept in."""

import time
from itertools import pairwise

import pytest

from controlplane.wire.errors import AppendTooLarge, LogFull
from controlplane.wire.log.values import (
    START,
    WINDOW,
    BacklogLimits,
    Block,
    IdempotencyToken,
    Log,
    LogBacklog,
    LogEntry,
    LogPosition,
    position_key,
)
from tests.controlplane.wire.log.conftest import Place

BEGIN = LogPosition(START, 0)
ALL = 10**9


def one(records: int = 1, data: bytes = b"a", newest_ms: int = 0) -> Block:
    return Block(records, data, newest_ms)


def entries(log: Log, stream: int, start: str = START) -> list[LogEntry]:
    end = log.position_after(LogPosition(start, 0), ALL)
    return log.read_streams([stream], start, end.position).get(stream, [])


def test_one_append_stands_at_one_position_in_every_stream(log: Log) -> None:
    """So that one position cuts all streams at the same moment."""
    first = log.append({1: one(2, b"first"), 2: one(3, b"other", 7)})
    second = log.append({2: one(1, b"third")})
    end = log.position_after(BEGIN, ALL)
    assert end == LogPosition(second, 6)
    read = log.read_streams([1, 2, 3], START, end.position)
    assert {s: [(e.position, e.records, e.block) for e in read[s]] for s in read} == {
        1: [(first, 2, b"first")],
        2: [(first, 3, b"other"), (second, 1, b"third")],
    }
    assert read[2][0].newest_ms == 7
    assert abs(read[2][0].appended_ms - time.time() * 1000) < 60_000


def test_positions_grow(log: Log) -> None:
    """Also within one millisecond; those of two streams together."""
    positions = [log.append({1 + n % 2: one()}) for n in range(20)]
    assert all(position_key(a) < position_key(b) for a, b in pairwise([START, *positions]))


def test_a_cut_is_bounded_and_always_moves_on(log: Log) -> None:
    """At most so many records, but at least one append, or a large one would block for ever."""
    ends = [log.append({1: one(n)}) for n in (10, 10, 50, 10)]
    first = log.position_after(BEGIN, 25)
    assert first == LogPosition(ends[1], 20)
    second = log.position_after(first, 25)
    assert second == LogPosition(ends[2], 70)
    assert log.position_after(second, 25) == LogPosition(ends[3], 80)
    assert log.position_after(BEGIN, 1000) == LogPosition(ends[3], 80)
    assert log.position_after(LogPosition(ends[3], 80), 25) == LogPosition(ends[3], 80)


def test_a_cut_is_bounded_by_bytes_too(log: Log) -> None:
    """Whichever bound is reached first; a block that is larger than the bound goes alone."""
    ends = [log.append({1: one(1, b"x" * size), 2: one(1, b"y")}) for size in (100, 50, 900, 10)]
    first = log.position_after(BEGIN, ALL, 160)
    assert first == LogPosition(ends[1], 4)
    assert log.position_after(BEGIN, 2, 160) == LogPosition(ends[0], 2)
    second = log.position_after(first, ALL, 160)
    assert second == LogPosition(ends[2], 6)
    assert log.position_after(second, ALL, 160) == LogPosition(ends[3], 8)
    assert log.position_after(BEGIN, ALL, 10**6) == LogPosition(ends[3], 8)
    log.mark_committed(first)
    assert log.position_after(first, ALL, 912) == LogPosition(ends[3], 8), "12 bytes and 901"


def test_a_cut_can_be_asked_for_again_from_anywhere(log: Log) -> None:
    """A restarted driver goes back; the answer is the same."""
    ends = [log.append({1: one(10)}) for _ in range(6)]
    cuts = [BEGIN]
    while cuts[-1].position != ends[-1]:
        cuts.append(log.position_after(cuts[-1], 20))
    assert [log.position_after(cut, 20) for cut in cuts[-2::-1]] == cuts[:0:-1]


def test_pieces_of_the_log_are_the_whole(log: Log) -> None:
    """Nothing is read twice and nothing left out, wherever it is cut."""
    blocks = [b"%d" % n for n in range(9)]
    for n, data in enumerate(blocks):
        log.append({1 + n % 2: one(1, data)})
    cuts = [BEGIN]
    while (cut := log.position_after(cuts[-1], 2)) != cuts[-1]:
        cuts.append(cut)
    pieces = [log.read_streams([1, 2], a.position, b.position) for a, b in pairwise(cuts)]
    for stream in (1, 2):
        read = [e.block for piece in pieces for e in piece.get(stream, [])]
        assert read == blocks[stream - 1 :: 2]


def test_a_mark_is_the_newest_event_time_of_the_stream_before(log: Log) -> None:
    """An older block does not lower it, and another stream does not touch it."""
    for stream, newest in ((1, 50), (2, 900), (1, 20), (1, 80), (1, 60)):
        log.append({stream: one(newest_ms=newest)})
    assert [entry.mark_ms for entry in entries(log, 1)] == [None, 50, 50, 80]
    assert [entry.mark_ms for entry in entries(log, 2)] == [None]


def test_marks_do_not_depend_on_the_cuts_or_on_who_reads(place: Place) -> None:
    """Another process that reads a piece in the middle sees the marks that one reader of all sees.

    The piece is read a second time after an earlier one was committed, as a replay does.
    """
    writer, driver, worker = place.open(), place.open(), place.open()
    for n in range(30):
        writer.append({1: one(newest_ms=n * 37 % 100), 2: one(newest_ms=n)})
    cuts = [BEGIN]
    while (cut := driver.position_after(cuts[-1], 8)) != cuts[-1]:
        cuts.append(cut)
    spans = [(a.position, b.position) for a, b in pairwise(cuts)]
    whole = worker.read_streams([1, 2], START, cuts[-1].position)
    once = [worker.read_streams([1, 2], *span) for span in spans]
    assert [e for piece in once for e in piece[1]] == whole[1]
    driver.mark_committed(cuts[3])
    again = place.open()
    assert [again.read_streams([1, 2], *span) for span in spans[3:]] == once[3:]


def test_a_full_log_refuses_and_takes_again_once_read(place: Place) -> None:
    """Back-pressure with the numbers in it; nothing of a refused append is stored."""
    log, driver = place.open(), place.open()
    limits = BacklogLimits(records=5)
    log.append({1: one(5)}, limits=limits)
    with pytest.raises(LogFull, match=r"5 records.*limit 5.*retry later") as refusal:
        log.append({1: one(), 2: one()}, limits=limits)
    assert (refusal.value.waiting, refusal.value.limit) == (5, 5)
    cut = driver.position_after(BEGIN, ALL)
    assert entries(driver, 2) == []
    driver.mark_committed(cut)
    log.append({2: one()}, limits=limits)
    assert len(entries(driver, 2, cut.position)) == 1


def test_bytes_are_bounded_before_they_are_there(place: Place) -> None:
    """The limit is never passed, not even by the append that would reach it."""
    log, driver = place.open(), place.open()
    limits = BacklogLimits(bytes=1000)
    log.append({1: one(data=b"x" * 400), 2: one(data=b"x" * 400)}, limits=limits)
    with pytest.raises(LogFull, match=r"800 bytes.*limit 1,000") as refusal:
        log.append({1: one(data=b"x" * 201)}, limits=limits)
    assert refusal.value.unit == "bytes"
    log.append({1: one(data=b"x" * 200)}, limits=limits)
    assert log.waiting() == LogBacklog(3, 1000)
    driver.mark_committed(driver.position_after(BEGIN, ALL))
    assert log.waiting() == LogBacklog(0, 0)
    log.append({1: one(data=b"x" * 1000)}, limits=limits)


def test_an_append_that_never_fits_is_told_so(log: Log) -> None:
    """To wait would not help."""
    with pytest.raises(AppendTooLarge, match=r"1,001 bytes.*at most 1,000"):
        log.append({1: one(data=b"x" * 1001)}, limits=BacklogLimits(bytes=1000))
    assert log.position_after(BEGIN, ALL) == BEGIN


def test_a_committed_cut_is_where_a_new_checkpoint_begins(place: Place) -> None:
    """What was committed before is not taken back by a commit that comes again."""
    log = place.open()
    assert log.committed_position() == BEGIN
    for _ in range(3):
        log.append({1: one(2)})
    first = log.position_after(BEGIN, 2)
    second = log.position_after(first, 2)
    log.mark_committed(first)
    log.mark_committed(second)
    log.mark_committed(first)
    assert place.open().committed_position() == second == LogPosition(second.position, 4)
    assert log.position_after(second, ALL).total == 6
    assert log.waiting().records == 2


def test_the_same_stamp_appends_once(log: Log) -> None:
    """A repetition is acknowledged with the position of the first, also when the log is full."""
    token = IdempotencyToken("p", 1)
    first = log.append({1: one(data=b"first")}, token)
    second = log.append({1: one(data=b"second")}, IdempotencyToken("p", 2))
    full = BacklogLimits(records=1)
    assert log.append({1: one(data=b"first")}, token, full) == first
    assert log.append({1: one(data=b"second")}, IdempotencyToken("p", 2), full) == second
    assert [entry.block for entry in entries(log, 1)] == [b"first", b"second"]
    assert log.position_after(BEGIN, ALL).total == 2


def test_producers_do_not_share_sequences(log: Log) -> None:
    """And an append without a stamp is never a repetition."""
    for producer in ("p", "q"):
        log.append({1: one()}, IdempotencyToken(producer, 1))
    log.append({1: one()})
    log.append({1: one()})
    assert len(entries(log, 1)) == 4


def test_a_repetition_from_another_process_is_read_once(place: Place) -> None:
    """Wherever the reader cuts: here between the first and its repetition."""
    first, second, driver = place.open(), place.open(), place.open()
    first.append({1: one(data=b"first", newest_ms=5)}, IdempotencyToken("p", 7))
    cut = driver.position_after(BEGIN, ALL)
    second.append({1: one(data=b"first", newest_ms=5)}, IdempotencyToken("p", 7))
    second.append({1: one(data=b"next", newest_ms=6)}, IdempotencyToken("p", 8))
    end = driver.position_after(cut, ALL)
    assert end.total == 2
    reader = place.open()
    (entry,) = reader.read_streams([1], cut.position, end.position)[1]
    assert (entry.block, entry.mark_ms) == (b"next", 5)


def test_sequences_may_overtake_each_other(log: Log) -> None:
    """Requests that are under way together arrive in any order; each is appended once."""
    order = [5, 3, 4, 40, 6, WINDOW + 2, 39]
    for sequence in [*order, *order]:
        log.append({1: one(data=b"%d" % sequence)}, IdempotencyToken("p", sequence))
    assert [int(entry.block) for entry in entries(log, 1)] == order


def test_records_after_a_position_are_counted(log: Log) -> None:
    """Of appends of one size exactly, also by a log that knows their number only."""
    for _ in range(4):
        log.append({1: one(10), 2: one(2)})
    cut = log.position_after(BEGIN, 24)
    assert cut.total == 24
    assert log.records_after(BEGIN, cut) == 24
    end = log.position_after(cut, ALL)
    assert log.records_after(cut, end) == 0
    assert log.records_after(end, end) == 0


def test_an_empty_log_has_no_records_after_its_start(log: Log) -> None:
    assert log.records_after(BEGIN, BEGIN) == 0
