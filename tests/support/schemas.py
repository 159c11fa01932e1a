"""Schemas for tests: reports of moving things, as most tests of the engine use them, and others."""

from collections.abc import Iterable
from typing import Any, Final

from controlplane.wire.routing.cluster_actions import AssignStream, SetSchema
from controlplane.wire.schema import ColumnSpec, StreamSchema
from workers.demo.recording import REPORT

# Reports of taxis, as the demo has them.
REPORTS: Final = REPORT
FAR_S: Final = REPORT.max_future_s
# Nothing that the reports have, and every type that there is.
READINGS: Final = StreamSchema(
    (
        ColumnSpec("at", "timestamp(us)", nullable=False),
        ColumnSpec("station", "string", nullable=False),
        ColumnSpec("open", "bool"),
        ColumnSpec("level", "float64"),
        ColumnSpec("charge", "float32"),
        ColumnSpec("price", "decimal(12, 2)"),
        ColumnSpec("built", "date"),
        ColumnSpec("serial", "uint64"),
        ColumnSpec("grade", "int8"),
        ColumnSpec("place", "struct<lat: float64, area: struct<code: string>>"),
        ColumnSpec("tags", "list<string>"),
        ColumnSpec("raw", "binary"),
    ),
    event_time="at",
)
# The fields of the Arrow schema of reports.
ARROW: Final[Any] = REPORTS.arrow


def part(*names: str, **more: str) -> dict[str, Any]:
    """Return the schema of reports with these columns alone, and more by type, as JSON."""
    kept = [column for column in REPORTS.columns if column.name in ("ts", *names)]
    added = [ColumnSpec(name, kind) for name, kind in more.items()]
    return StreamSchema((*kept, *added), event_time="ts").to_json()


def declared(streams: Iterable[int], schema: StreamSchema = REPORTS) -> list[SetSchema]:
    """Return what gives these streams a schema in a routing table."""
    return [SetSchema(stream, schema) for stream in streams]


def assigned(
    streams: Iterable[int], splits: int = 2, schema: StreamSchema = REPORTS
) -> list[AssignStream | SetSchema]:
    """Return what gives each stream a split node (its id modulo `splits`) and its schema."""
    every = list(streams)
    return [*(AssignStream(one, one % splits) for one in every), *declared(every, schema)]


# For producers of clusters that no control plane has.
ALL_REPORTS: Final = dict.fromkeys(range(1_000), REPORTS)
