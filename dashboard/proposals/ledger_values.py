"""Titles, units and formats of the figures of the ledger."""

from controlplane.models import LedgerEntry
from controlplane.policies.planner_record import FIGURES
from dashboard.numbers import milliseconds, percent, ratio, size

TITLES = {
    "imbalance": "Imbalance",
    "replication_factor": "Replication",
    "bytes": "State moved",
    "pause_ms": "Longest pause",
    "latency_ms": "p95 latency",
}
UNITS = {
    "imbalance": "",
    "replication_factor": "",
    "bytes": "bytes",
    "pause_ms": "ms",
    "latency_ms": "ms",
}
WRITTEN = {
    "imbalance": percent,
    "replication_factor": ratio,
    "bytes": size,
    "pause_ms": milliseconds,
    "latency_ms": milliseconds,
}


def ledger_cells(entry: LedgerEntry) -> list[tuple[str, ...]]:
    """Return title, approved, expected and measured value of each figure."""
    parts = (entry.approved, entry.expected, entry.measured)
    return [
        (TITLES[figure], *(WRITTEN[figure](values.get(figure)) for values in parts))
        for figure in FIGURES
    ]
