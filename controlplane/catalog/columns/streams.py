"""The columns of the list of streams."""

from functools import partial
from operator import attrgetter
from typing import Any, Final

from django.db.models import Q

from controlplane.catalog.split_reading import assignment_of, partition_parts
from controlplane.models import Cluster, Drop, QueryStream
from controlplane.models.query import LIVE_STATES
from controlplane.pagination.columns import FieldKind, ListColumn, stored

_HAS: Final = ("drops", "schema", "forecast")


def _has(_cluster: Cluster | None, _lookup: str, what: str) -> Q:
    if what == "drops":
        return Q(pk__in=Drop.objects.values("stream"))
    return ~Q(schema={}) if what == "schema" else ~Q(forecaster={})


def _is_read_at(cluster: Cluster | None, lookup: str, split: int) -> Q:
    """Return the condition on the split node; one that reads partitions is found by its index."""
    is_own = Q(**{f"split__{lookup}": split})
    if cluster is None or lookup != "exact" or not (parts := partition_parts(cluster)):
        return is_own
    of = assignment_of(cluster).of
    ids = [id_ for id_, own in parts.items() if split in {of(id_, number) for number in own}]
    return (is_own & ~Q(pk__in=parts)) | Q(pk__in=ids)


def _is_read_by(cluster: Cluster | None, lookup: str, name: str) -> Q:
    live = Q(query__state__in=LIVE_STATES, query__cluster=cluster)
    readers = QueryStream.objects.filter(live, **{f"query__name__{lookup}": name})
    return Q(pk__in=readers.values("stream"))


_column = partial(stored, below="stream")


def _figure(name: str, about: str, title: str, term: str, **more: Any) -> ListColumn:
    """Return a column of numbers, the largest first."""
    given: dict[str, Any] = {"kind": FieldKind.NUMBER, "is_figure": True, "is_ordered": True}
    return _column(name, about, term, title=title, **{"first": "-"} | given | more)


COLUMNS: Final = (
    _column("id"),
    _column("name", "name of the stream", "name", title="Stream", is_ordered=True, place=1),
    _column("title", "title", "title", place=2),
    _figure("rate", "measured rate, else the declared one", "Rate now, records/s", "rate",
            explained_by="Rate now", unit="records/s", stored="shown_rate",
            in_file="records_per_s", place=4),
    _figure("mean_rate", "mean rate of the last hour", "Mean of up to 1 h, records/s", "mean",
            explained_by="Mean of up to 1 h", unit="records/s", in_api=False,
            in_file="mean_records_per_s"),
    _figure("bytes_per_s", "bytes that arrive in the log", "Bytes/s", "bytes", unit="bytes/s",
            value=attrgetter("bytes_per_s"), is_known=lambda row: row.stream.record_bytes > 0,
            stored="shown_bytes", in_api=False),
    ListColumn(name="split_node_latency_ms", about="time that records wait at its split node",
               value=attrgetter("split_latency_ms"), unit="ms", title="Split node latency",
               is_figure=True),
    ListColumn(name="unread_records", about="unread records of its log or topic",
               value=attrgetter("unread"), unit="records", title="Unread, records",
               is_figure=True, in_api=True, type=float | None),
    ListColumn(name="lag_s", about="unread records of a topic by the age of the newest read one, "
               "of the log by the time in which so many arrive", value=attrgetter("lag_s"),
               unit="s", title="Lag", is_figure=True, in_api=True, type=float | None, place=7),
    _column("declared_rate", "declared rate", "declared", unit="records/s",
            kind=FieldKind.NUMBER, in_file="declared_records_per_s", place=3),
    _figure("split", "index of its split node", "Split node", "split", first="",
            in_file="split_node", condition=_is_read_at, place=5),
    ListColumn(name="splits", about="indices of all split nodes that read it or its source",
               value=attrgetter("splits"), in_api=True, type=list[int], in_file=""),
    _figure("queries", "number of live queries that read it", "Live queries", "queries",
            value=attrgetter("queries"), stored="reader_count", type=int, in_file="live_queries",
            place=6),
    ListColumn(name="query", about="name of a live query that reads it", term="query",
               kind=FieldKind.TEXT, condition=_is_read_by),
    ListColumn(name="has", about="what it has", term="has", kind=FieldKind.CHOICE, condition=_has,
               choices=lambda: _HAS),
    ListColumn(name="drops", title="Drops", value=lambda row: len(row.drops), term="drops",
               stored="drop_count", is_ordered=True, in_file="drop_rules"),
    ListColumn(name="dead_letters",
               value=lambda row: None if row.dead is None else row.dead_records),
    _column("late_records", "all records that came later than the watermark delay allows"),
)  # fmt: skip
