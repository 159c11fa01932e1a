"""The size of a batch: how many records it may have, by what recent batches became."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

# A batch of so few records is never refused: the next one is bounded by what it did.
MIN_RECORDS: Final = 1_000
# The first batch of unknown cost, and the growth from one batch to the next.
INITIAL_RECORDS: Final = 50_000
GROWTH: Final = 2
# Batches that are remembered: one that was small for want of records does not slow the next.
RECENT_BATCHES: Final = 8
# The share of a JVM's memory that the rows of one batch may have: they are sorted by node there,
# while rows of results and state pass through.
_SHARE: Final = 0.25
_UNITS: Final = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_USUAL: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class BatchLoad:
    """What one batch read and became: records of the log, bytes to nodes, bytes from nodes."""

    records: int
    delivered: int
    emitted: int

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "BatchLoad":
        """Return the load of a telemetry row."""
        nodes = row.get("nodes", ())
        return cls(
            row.get("in", 0),
            sum(node.get("bytes", 0) for node in nodes),
            sum(node.get("emitted", 0) for node in nodes),
        )


def record_limit(
    loads: Sequence[BatchLoad], budget: int, most: int, more_queries: float = 1.0
) -> int:
    """Return how many records the next batch may have: at most `most`, at least `MIN_RECORDS`.

    A limit of records, or of the log's bytes, does not limit the work of a batch: a record may be
    delivered to many nodes, and change the windows of a thousand queries. So the bytes that recent
    batches delivered and emitted per record limit the next one. Only `latestOffset` uses the
    limit, and the offset records the result, so a replay does not depend on it.

    `loads`: recent batches, oldest first; `budget`: bytes that a batch may deliver, and emit;
    `more_queries`: by which factor the queries have become more since the last one.
    """
    filled = [load for load in loads if load.records]
    largest = max((load.records for load in filled), default=0) / max(1.0, more_queries)
    bound = max(INITIAL_RECORDS, GROWTH * largest)
    if filled:
        last = filled[-1]
        delivered = last.delivered / last.records
        # More queries cause more output; nodes get a record once for all of them.
        emitted = last.emitted / last.records * max(1.0, more_queries)
        bound = min(bound, budget / max(delivered, emitted, 1e-9))
    return max(min(MIN_RECORDS, most), min(most, int(bound)))


def batch_budget(memory: str) -> int:
    """Return the bytes that a batch may deliver in a JVM with so much memory, like `768m`.

    Spark's own notation: a number and a unit, without one MiB. What cannot be read counts as 1 GiB.
    """
    text = memory.strip().lower().removesuffix("b")
    number, unit = (text[:-1], text[-1:]) if text[-1:] in _UNITS else (text, "m")
    size = int(number) * _UNITS[unit] if number.isdigit() else _USUAL
    return int(size * _SHARE)
