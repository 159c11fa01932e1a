"""The report of a node about its batch; becomes telemetry once the batch is committed."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from workers.pipeline.exchange.envelope import Envelope


@dataclass(frozen=True)
class NodeReport:
    """Measures of one node in one batch.

    `records` came, `taken` were worked on and `waiting` are left, in `busy_ms`, of which `cpu_ms`
    were the processor's and `state_us` (µs) went into state. `capacity`: records/s where it is
    emulated. `arrivals` pairs the time a block was appended (ms) with its record count, for
    latencies; `sources` is what the split nodes report (in one node's envelopes only). `ended` are
    queries that left the table; `split` those of which other nodes may have tasks, `merged` those
    that an aggregator node combines. `moves` are the tasks that it exported (query, task, bytes of
    state, records that waited); `imported` those it got (query, task). `dropped`: stream, query and
    records of its query edges. `faults`: query, incarnation, reason, stage and sample (JSON) of
    failed queries, in this batch or before. `emitted`: bytes of windows and states. `executor` is
    where it ran; `elapsed_ms`: since the batch before.
    """

    node: int
    batch: int
    version: int
    records: int
    bytes: int
    busy_ms: float
    tasks: int
    state_bytes: int
    late: int
    event_ms: int | None
    arrivals: list[list[int]] = field(default_factory=list)
    sources: list[dict[str, Any]] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)
    split: list[int] = field(default_factory=list)
    merged: list[int] = field(default_factory=list)
    moves: list[list[int]] = field(default_factory=list)
    imported: list[list[int]] = field(default_factory=list)
    executor: str = ""
    taken: int = 0
    waiting: int = 0
    capacity: float | None = None
    cpu_ms: float = 0.0
    state_us: int = 0
    elapsed_ms: int | None = None
    dropped: list[list[int]] = field(default_factory=list)
    emitted: int = 0
    faults: list[tuple[int, int, str, str, str]] = field(default_factory=list)

    @property
    def utilisation(self) -> float | None:
        """Return the share of its capacity, or of its time, that the node used."""
        if not self.elapsed_ms:
            return None
        if self.capacity is None:
            return self.busy_ms / self.elapsed_ms
        return self.taken / (self.capacity * self.elapsed_ms / 1000) if self.capacity else 1.0

    def to_json(self) -> str:
        """Return the report as one line of JSON."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> "NodeReport":
        """Return the report that `to_json` wrote."""
        return cls(**json.loads(text))


def arrivals_of(envelopes: Sequence[Envelope]) -> list[list[int]]:
    """Return [appended ms, records] pairs, one per append."""
    result: dict[int, int] = {}
    for envelope in envelopes:
        for appended_ms, records in zip(envelope.appended_ms, envelope.lengths, strict=True):
            result[appended_ms] = result.get(appended_ms, 0) + records
    return sorted([ms, records] for ms, records in result.items())
