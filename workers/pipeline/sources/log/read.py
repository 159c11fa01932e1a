"""Reading the log in a worker."""

from collections.abc import Sequence

from controlplane.wire.log.values import Log, LogEntry, StreamBacklog
from workers.pipeline.sources.cut import LogCut


def read_streams(
    log: Log, streams: Sequence[int], start: LogCut, end: LogCut
) -> tuple[dict[int, list[LogEntry]], dict[int, StreamBacklog]]:
    """Return the entries between two cuts, and what is unread after them, by stream."""
    entries, behind = dict[int, list[LogEntry]](), dict[int, StreamBacklog]()
    # Streams that are read from the same position to the same other one are read together.
    groups: dict[tuple[str, str], list[int]] = {}
    for stream in streams:
        groups.setdefault((start.of(stream), end.of(stream)), []).append(stream)
    for (first, last), group in groups.items():
        if first != last:
            entries |= log.read_streams(group, first, last)
        behind |= log.behind(group, last)
    return entries, behind
