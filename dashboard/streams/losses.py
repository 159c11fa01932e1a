"""What drop rules and the ladder take from a query or stream now: a tile, and a line for each."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import F, Q
from django.utils import timezone

from controlplane.catalog.drop_rules import drop_rules_of
from controlplane.models import Cluster, Drop, Query, QueryStream, Stream
from controlplane.numbers import clock, compact, percent
from controlplane.planners.shedding.episodes import Loss, present_drops
from controlplane.wire.routing.drop_rules import INPUT
from dashboard.frame.tile import Tile

# Of which nearly nothing is left.
_LITTLE: Final = 0.01
_INPUTS_FIRST: Final = F("query_id").asc(nulls_first=True)


@dataclass(frozen=True)
class InputLosses:
    """The part of the input that is kept now, lines about what drops the rest, and late records."""

    kept: float
    lines: Sequence[str]
    late: int

    @property
    def grade(self) -> str:
        """Return the level of the losses, "" without drops."""
        if not self.lines:
            return ""
        return "bad" if self.kept <= _LITTLE else "warn"

    @property
    def tile(self) -> Tile:
        """Return the tile of what is kept and what was late."""
        note = "nothing is dropped" if not self.lines else "drop rules or load shedding"
        late = f"{compact(self.late)} late, not counted" if self.late else "none late"
        return Tile("Input kept", percent(self.kept), "", note, late, self.kept, top=1.0,
                    grade=self.grade or ("warn" if self.late else ""))  # fmt: skip


def query_losses(query: Query) -> InputLosses:
    """Return the losses of a query."""
    streams = list(query.streams.all())
    loss = present_drops(query.cluster, timezone.now()).of_query(query.pk, [s.pk for s in streams])
    rules = Drop.objects.filter(Q(query=None) | Q(query=query), stream__in=streams)
    rows = list(rules.select_related("stream", "query").order_by(_INPUTS_FIRST))
    return _losses(loss, rows, sum(row.per_s for row in rows), streams, query.late_records)


def stream_losses(stream: Stream) -> InputLosses:
    """Return the losses of a stream: of its input, and what some query lacks."""
    loss = present_drops(stream.cluster, timezone.now()).of_stream(stream.pk)
    rows = list(drop_rules_of(stream))
    edges = max((row.per_s for row in rows if row.query_id), default=0.0)
    per_s = edges + sum(row.per_s for row in rows if not row.query_id)
    return _losses(loss, rows, per_s, [stream], stream.late_records)


def _losses(
    loss: Loss | None, rules: Sequence[Drop], per_s: float, streams: Sequence[Stream], late: int
) -> InputLosses:
    rate, now = sum(stream.rate or 0.0 for stream in streams), timezone.now()
    kept = max(0.0, 1 - per_s / rate) if rate else 1.0
    lines = [_rule_line(row, now) for row in rules]
    if loss is not None:
        kept *= 1 - loss.share
        lines.insert(0, f"Load shedding has dropped {percent(loss.share)} of its input since"
                        f" {clock(loss.since, now)} UTC: {loss.dropped:,} of {loss.read:,} records"
                     )  # fmt: skip
    return InputLosses(kept, lines, late)


def _rule_line(row: Drop, now: datetime) -> str:
    edge = f"to {row.query.name}" if row.query else "on the input"
    return (
        f"A drop rule {edge} of {row.stream.name} has dropped {row.dropped:,} records since"
        f" {clock(row.set_at, now)} UTC, {compact(row.per_s)}/s now"
    )


def streams_with_drops(cluster: Cluster) -> set[int]:
    """Return the ids of the streams of which the ladder drops records now."""
    return {stream for stream, _ in present_drops(cluster, timezone.now()).edges}


def queries_with_drops(cluster: Cluster, queries: Sequence[int]) -> set[int]:
    """Return which of some queries the ladder takes records from now, by their ids."""
    edges = present_drops(cluster, timezone.now()).edges
    inputs = {stream for stream, query in edges if query == INPUT}
    reading = QueryStream.objects.filter(query__in=queries, stream__in=inputs)
    whole = set(reading.values_list("query", flat=True)) if inputs else set()
    return whole | {query for _, query in edges}.intersection(queries)
