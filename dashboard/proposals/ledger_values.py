"""Titles, units and formats of the figures of the ledger."""

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
