"""The offset moves with the log or with the routing, and not otherwise."""

from controlplane.wire.log import Cut
from workers.pipeline.offset import Offset

OFFSET = Offset(batch=4, position="100-0", total=50, version=3)


def test_nothing_new_is_no_batch() -> None:
    """Spark starts no batch where the end equals the start."""
    assert OFFSET.next(Cut("100-0", 50), 3) == OFFSET


def test_new_records_or_a_new_version_make_the_next_batch() -> None:
    """A plan takes effect even while no record arrives."""
    assert OFFSET.next(Cut("101-0", 60), 3) == Offset(5, "101-0", 60, 3)
    assert OFFSET.next(Cut("100-0", 50), 4) == Offset(5, "100-0", 50, 4)


def test_offset_comes_back_from_sparks_log() -> None:
    """JSON in, JSON out."""
    assert Offset.from_json(OFFSET.to_json()) == OFFSET


def test_state_that_was_handed_on_is_taken_in_by_the_very_next_batch() -> None:
    """Under the same version, also where a newer one waits and no record has come."""
    leaving = OFFSET.next(Cut("100-0", 50), 4, before=3)
    assert leaving == Offset(5, "100-0", 50, 4, before=3)
    arriving = leaving.next(Cut("100-0", 50), 7)
    assert arriving == Offset(6, "100-0", 50, 4)
    assert arriving.next(Cut("100-0", 50), 7, before=4) == Offset(7, "100-0", 50, 7, before=4)
    assert Offset.from_json(leaving.to_json()) == leaving
