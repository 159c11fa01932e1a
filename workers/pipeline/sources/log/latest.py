"""How far the log reaches, which the driver asks it for each batch."""

from controlplane.wire.log.values import Log
from workers.pipeline.sources.cut import LogCut


def next_cut(log: Log, before: LogCut, records: int, max_bytes: int) -> LogCut:
    """Return the cut at the end of the next batch, `before` without a record to read.

    No stream is delayed yet (`queues.queued`).
    """
    end = log.position_after(before, records, max_bytes) if records else before
    return LogCut(end.position, end.total)
