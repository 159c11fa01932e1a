"""The columns of the list of queries."""

from functools import partial
from operator import attrgetter
from typing import Any, Final

from django.db.models import Q

from controlplane.models import Cluster, Query, QueryStream, Task
from controlplane.models.query import LIVE_STATES
from controlplane.pagination.columns import FieldKind, ListColumn, stored

STATES: Final = tuple(str(state) for state in Query.State.values)
LIVE: Final = "live"


def _state_is(_cluster: Cluster | None, lookup: str, state: str) -> Q:
    return Q(state__in=LIVE_STATES) if state == LIVE else Q(**{f"state__{lookup}": state})


def _on_node(cluster: Cluster | None, lookup: str, index: float) -> Q:
    here = Task.objects.filter(node__cluster=cluster, **{f"node__index__{lookup}": index})
    return Q(pk__in=here.values("query"))


def _reads_stream(cluster: Cluster | None, lookup: str, name: str) -> Q:
    # By the streams' readers, not by looking at what every query reads.
    read = QueryStream.objects.filter(stream__cluster=cluster, **{f"stream__name__{lookup}": name})
    return Q(pk__in=read.values("query"))


def _node(row: Any) -> int | None:
    return None if row.node is None else row.node.index


def _is_measured(row: Any) -> bool:
    return row.query.measured_at is not None


def _cost(name: str, about: str, term: str, title: str, unit: str, **more: Any) -> ListColumn:
    """Return a column of what queries cost, which is measured."""
    given: dict[str, Any] = {"is_known": _is_measured, "kind": FieldKind.NUMBER, "first": "-"}
    given |= {"title": title, "unit": unit, "is_figure": True, "is_ordered": True}
    return _column(name, about, term, **given | more)


_column = partial(stored, below="query")
# Names, streams and tasks are in the API as they are submitted.
COLUMNS: Final = (
    _column("id"),
    _column("name", "name of the query", "name", title="Query", is_ordered=True, in_api=False,
            place=1),
    _column("state", "state; live: pending, running or ending", "state", title="State",
            kind=FieldKind.CHOICE, condition=_state_is, choices=lambda: (LIVE, *STATES),
            is_ordered=True, place=2),
    _column("detail"),
    ListColumn(name="node", about="index of a node that has a task of it", title="Node",
               value=_node, term="node", kind=FieldKind.NUMBER, condition=_on_node,
               stored="first_node", is_ordered=True, in_api=True, type=int | None, place=3),
    ListColumn(name="streams", about="name of a stream that it reads", title="Streams",
               value=lambda row: " ".join(row.streams), term="stream", kind=FieldKind.TEXT,
               condition=_reads_stream, place=4),
    _column("source_rate", "records of its streams", "rate", unit="records/s",
            kind=FieldKind.NUMBER, is_ordered=True, in_api=False, in_file="source_records_per_s"),
    _cost("evaluations_per_s", "records that its tasks evaluate: each once per task that reads it",
          "evaluations", "Evaluations/s", "evaluations/s",
          is_main=True),
    _cost("latency_ms", "p95 of the slowest of its nodes", "latency", "Latency p95", "ms",
          is_known=lambda row: _is_measured(row) and row.query.latency_ms > 0),
    _cost("processor_percent", "estimated processor time", "processor", "Processor time",
          "% of one processor", note="estimated", explained_by="Processor time of a query",
          place=7),
    _cost("state_bytes", "state of its tasks", "bytes", "State size", "bytes"),
    _cost("shared_with", "others with the same computation on a node of it", "shared",
          "Shared with", "queries"),
    _column("measured_at", "time of these measurements, null before the first"),
    _column("late_records", "all records that were too late for it"),
    _column("window_s", "length of its windows", "window", unit="s", title="Window",
            kind=FieldKind.NUMBER, is_figure=True, is_ordered=True, first="-", place=5),
    ListColumn(name="tasks", about="number of tasks", value=attrgetter("query.task_count"),
               term="tasks", kind=FieldKind.NUMBER, stored="task_count", is_ordered=True,
               in_file="task_count", place=6),
    _column("submitted_by", "user who submitted it", "by"),
    _column("submitted_at", "time of submission", "submitted", title="Submitted",
            kind=FieldKind.TIME, is_ordered=True),
    _column("ended_at"),
)  # fmt: skip
