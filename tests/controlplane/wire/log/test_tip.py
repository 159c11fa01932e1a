"""How far a log goes: what is appended behind its tip has no older mark."""

from controlplane.wire.log import START, Block, Log, Tip
from controlplane.wire.log.values import order_of


def look(log: Log) -> None:
    """Let the pipeline look at all there is."""
    log.cut_after(log.committed_cut(), 10**9)


def test_an_empty_log_knows_no_time(log: Log) -> None:
    assert log.tip([1, 2]) == Tip(START, {})
    assert log.tip([]) == Tip(START, {})


def test_the_tip_has_the_newest_event_time_of_each_stream(log: Log) -> None:
    """A late block does not turn time back; a stream without records is absent."""
    log.append({1: Block(1, b"a", 500), 2: Block(1, b"b", 90)})
    position = log.append({1: Block(1, b"c", 400)})
    look(log)
    tip = log.tip([1, 2, 3])
    assert (tip.position, tip.newest) == (position, {1: 500, 2: 90})
    assert log.tip([2]).newest == {2: 90}


def test_the_tip_stays_when_all_is_processed(log: Log) -> None:
    """The pipeline takes what it has processed out of the log."""
    position = log.append({1: Block(1, b"a", 500)})
    cut = log.cut_after(log.committed_cut(), 10**9)
    log.mark_committed(cut)
    assert log.tip([1]) == Tip(position, {1: 500})
    later = log.append({1: Block(1, b"b", 700)})
    look(log)
    assert log.tip([1]) == Tip(later, {1: 700})
    assert order_of(later) > order_of(position)
