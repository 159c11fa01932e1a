"""The offset moves with the log or with the routing, and not otherwise."""

import json

from controlplane.wire.log.values import LogPosition
from workers.pipeline.sources.cut import Cut, LogCut
from workers.pipeline.split_nodes.grouping_states import StoredState
from workers.pipeline.split_nodes.offset import BatchInputs, Offset

OFFSET = Offset(batch=4, position="100-0", total=50, version=3, clock_ms=900)
HERE, FURTHER = Cut(LogCut("100-0", 50)), Cut(LogCut("101-0", 60))


def test_nothing_new_is_no_batch() -> None:
    """Spark starts no batch where the end equals the start."""
    assert OFFSET.next(BatchInputs(HERE, 3, now_ms=1_000)) == OFFSET


def test_new_records_or_a_new_version_make_the_next_batch() -> None:
    """A plan takes effect even while no record arrives."""
    assert OFFSET.next(BatchInputs(FURTHER, 3, 1_000)) == Offset(5, "101-0", 60, 3, clock_ms=1_000)
    assert OFFSET.next(BatchInputs(HERE, 4, 1_000)) == Offset(5, "100-0", 50, 4, clock_ms=1_000)


def test_offset_comes_back_from_sparks_log() -> None:
    """JSON in, JSON out."""
    stored = {"export_version": 2, "merge_pending": True, "has_backlog": True}
    row = {"batch": 4, "position": "1-0", "total": 5, "version": 3, **stored}
    restored = Offset.from_json(row)
    assert (restored.export_version, restored.merge_pending, restored.has_backlog) == (2, 1, 1)
    assert restored.to_json().items() >= row.items()
    offset = OFFSET.next(BatchInputs(FURTHER, 4, 1_000, has_aggregators=True))
    offset = offset.with_states({7: StoredState('{"grouping":"shuffle"}', 3, '{"load":[1,2,3]}')})
    again = Offset.from_json(json.loads(json.dumps(offset.to_json())))
    assert again == offset
    assert again.states == offset.states
    assert again.states[7].tasks == 3


def test_state_that_was_handed_on_is_taken_in_by_the_very_next_batch() -> None:
    """Under the same version, also where a newer one waits and no record has come."""
    leaving = OFFSET.next(BatchInputs(HERE, 4, 1_000, export_version=3))
    assert leaving == Offset(5, "100-0", 50, 4, export_version=3, clock_ms=1_000)
    arriving = leaving.next(BatchInputs(HERE, 7, 1_200))
    assert arriving == Offset(6, "100-0", 50, 4, clock_ms=1_200)
    later = arriving.next(BatchInputs(HERE, 7, 1_400, export_version=4))
    assert later == Offset(7, "100-0", 50, 7, export_version=4, clock_ms=1_400)


def test_records_that_wait_make_the_next_batch() -> None:
    """Though the log stands still: only then does time pass for a node with a small capacity."""
    ticked = OFFSET.next(BatchInputs(HERE, 3, 1_000, has_backlog=True))
    assert ticked == Offset(5, "100-0", 50, 3, clock_ms=1_000, has_backlog=True)
    assert ticked.next(BatchInputs(HERE, 3, 950, has_backlog=True)).clock_ms == 1_000, (
        "no clock steps back"
    )


def test_what_is_given_out_to_an_aggregator_is_merged_by_one_more_batch() -> None:
    """And by no third one."""
    given_out = OFFSET.next(BatchInputs(FURTHER, 3, 1_000, has_aggregators=True))
    assert given_out.merge_pending
    merging = given_out.next(BatchInputs(FURTHER, 3, 1_100, has_aggregators=True))
    assert (merging.batch, merging.position, merging.merge_pending) == (6, "101-0", False)
    assert merging.next(BatchInputs(FURTHER, 3, 1_200, has_aggregators=True)) == merging


def test_a_loss_of_redis_makes_one_batch_that_republishes() -> None:
    """Without a record: readers wait for the rows. A replay finds it in the offsets again."""
    again = OFFSET.next(BatchInputs(HERE, 3, 1_000, restored=77))
    assert (again.batch, again.position, again.restored) == (5, "100-0", 77)
    assert again.next(BatchInputs(HERE, 3, 1_100, restored=77)) == again


def test_delayed_streams_make_the_next_batch_and_hold_back_what_the_log_forgets() -> None:
    """Until no stream has unread records; the offset has both the places and the credits."""
    cut = Cut(LogCut("101-0", 60, {7: "98-1", 9: "99-0"}, {2: 12.5}))
    delayed = OFFSET.next(BatchInputs(cut, 3, 1_000))
    assert delayed.cut == cut
    assert delayed.cut.log.needed == LogPosition("98-1", 60)
    assert Offset.from_json(json.loads(json.dumps(delayed.to_json()))) == delayed
    following = delayed.next(BatchInputs(FURTHER, 3, 1_100))
    assert (following.batch, following.cut) == (6, FURTHER), "though the log stands still"
    assert following.cut.log.needed == LogPosition("101-0", 60)
    assert following.next(BatchInputs(FURTHER, 3, 1_200)) == following
