"""How far a log goes: what is appended behind its tip has no older mark."""

from controlplane.wire.log.values import START, Block, Log, LogHead, position_key


def look(log: Log) -> None:
    """Let the pipeline look at all there is."""
    log.position_after(log.committed_position(), 10**9)


def test_an_empty_log_knows_no_time(log: Log) -> None:
    assert log.head([1, 2]) == LogHead(START, {})
    assert log.head([]) == LogHead(START, {})


def test_the_tip_has_the_newest_event_time_of_each_stream(log: Log) -> None:
    """A late block does not turn time back; a stream without records is absent."""
    log.append({1: Block(1, b"a", 500), 2: Block(1, b"b", 90)})
    position = log.append({1: Block(1, b"c", 400)})
    look(log)
    head = log.head([1, 2, 3])
    assert (head.position, head.newest) == (position, {1: 500, 2: 90})
    assert log.head([2]).newest == {2: 90}


def test_the_tip_stays_when_all_is_processed(log: Log) -> None:
    """The pipeline takes what it has processed out of the log."""
    position = log.append({1: Block(1, b"a", 500)})
    cut = log.position_after(log.committed_position(), 10**9)
    log.mark_committed(cut)
    assert log.head([1]) == LogHead(position, {1: 500})
    later = log.append({1: Block(1, b"b", 700)})
    look(log)
    assert log.head([1]) == LogHead(later, {1: 700})
    assert position_key(later) > position_key(position)
