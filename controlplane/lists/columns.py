"""The columns of exported lists: flat values with the unit in the name."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

from controlplane.models import AuditEntry, Proposal


@dataclass(frozen=True)
class ExportColumn:
    """A column of an export: its name, and the function that returns its value of a row."""

    name: str
    value: Callable[[Any], Any]


def _attributes(names: str) -> list[ExportColumn]:
    """Return columns that are attributes of the rows."""
    return [ExportColumn(name, attrgetter(name)) for name in names.split()]


def _of(part: str, names: str) -> list[ExportColumn]:
    """Return columns that are attributes of a part of the rows."""
    return [ExportColumn(name, attrgetter(f"{part}.{name}")) for name in names.split()]


def _actions(row: Proposal) -> Any:
    return row.predicted.get("actions")


def _cluster(row: AuditEntry) -> str:
    return row.cluster.slug if row.cluster is not None else ""


QUERY_COLUMNS: Final[Sequence[ExportColumn]] = (
    *_of("query", "id name state detail"),
    ExportColumn("node", lambda row: None if row.node is None else row.node.index),
    ExportColumn("streams", lambda row: " ".join(row.streams)),
    ExportColumn("source_records_per_s", lambda row: row.query.source_rate),
    *_of("query", "records_per_s latency_ms processor_percent state_bytes shared_with measured_at"),
    *_of("query", "late_records window_s task_count submitted_by submitted_at ended_at"),
)
STREAM_COLUMNS: Final[Sequence[ExportColumn]] = (
    *_of("stream", "id name title"),
    ExportColumn("records_per_s", lambda row: row.stream.rate),
    ExportColumn("mean_records_per_s", attrgetter("stream.mean_rate")),
    ExportColumn("bytes_per_s", attrgetter("bytes_per_s")),
    ExportColumn("split_node_latency_ms", attrgetter("split_latency_ms")),
    ExportColumn("declared_records_per_s", lambda row: row.stream.declared_rate),
    ExportColumn("split_node", lambda row: row.stream.split),
    ExportColumn("live_queries", lambda row: row.queries),
    ExportColumn("drop_rules", lambda row: len(row.drops)),
    ExportColumn("dead_letters", lambda row: None if row.dead is None else row.dead_records),
    ExportColumn("late_records", lambda row: row.stream.late_records),
)
PROPOSAL_COLUMNS: Final[Sequence[ExportColumn]] = (
    *_attributes("id state planner algorithm"),
    ExportColumn("actions", _actions),
    *_attributes(
        "requested_by requested_at approved_by approved_at decided_by decided_at error_code"
    ),
)
DECISION_COLUMNS: Final[Sequence[ExportColumn]] = tuple(
    _attributes("id loop code number limit unit text proposal_id first_at last_at count")
)
AUDIT_COLUMNS: Final[Sequence[ExportColumn]] = (
    *_attributes("id at actor address"),
    ExportColumn("cluster", _cluster),
    *_attributes("action object reason request seal before after sequence hash"),
)
