"""Entries in the log's streams that no append has written: the append after them is read."""

from typing import Any, Final

import redis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from controlplane.wire import keys
from controlplane.wire.log import open_log
from controlplane.wire.log.queued import appended_records, unread_entries
from controlplane.wire.log.values import Block, LogPosition

ALL: Final = 10**9
# Names of fields that appends write, and others; any bytes as values.
FIELDS: Final = st.dictionaries(
    st.sampled_from([b"n", b"b", b"x", b"m", b"c", b"total", b"bytes", b"?"]),
    st.one_of(st.binary(max_size=20), st.sampled_from([b"9" * 5000, b"1e400", b"nan", b"-1"])),
    min_size=1,
).filter(lambda fields: b"total" not in fields)


@given(in_stream=FIELDS, in_index=FIELDS, count=st.integers(1, 6))
@settings(
    max_examples=20,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_the_append_after_foreign_entries_is_read(
    redis_client: "redis.Redis", redis_server: str, in_stream: Any, in_index: Any, count: int
) -> None:
    """Foreign entries are blocks that no node can read; the totals are those of appends."""
    redis_client.flushdb()
    log = open_log("", "c", redis_server)
    start = LogPosition("0-0", 0)
    for total in (1, 2):
        for _ in range(count):
            redis_client.xadd(keys.log_key("c", 1), in_stream)
            redis_client.xadd(keys.index_key("c"), in_index)
        log.append({1: Block(1, b"good", 5)})
        end = log.position_after(start, ALL)
        assert end.total == total
        read = log.read_streams([1], start.position, end.position)[1]
        assert read[-1].block == b"good"
        assert len(read) == count + 1
        assert log.waiting().records == 1
        assert log.head([1]).position == end.position
        unread_entries(redis_client, "c", {1: start.position}, end.position, ALL)
        appended_records(redis_client, "c", {1: start.position})
        assert log.behind([1], start.position)[1].records >= 0
        log.mark_committed(end)
        assert log.waiting().records == 0
        start = end
    log.close()
