"""The armed ladder of a description: export with names, arming with the ids of a cluster."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from controlplane.access.roles import Actor
from controlplane.cluster_spec.document import (
    BadDescription,
    EdgeCostPart,
    EdgeWindowPart,
    KeptEdgePart,
    LadderPart,
    RungPart,
)
from controlplane.cluster_spec.report import ApplyReport
from controlplane.models import ArmedLadder, Cluster, Query
from controlplane.planners.shedding.arming import ladder_summary
from controlplane.topology.apply import TopologyChange, apply
from controlplane.wire.errors import InconsistentDelta
from controlplane.wire.routing.cluster_actions import SetLadder
from controlplane.wire.routing.drop_rules import INPUT, Edge
from controlplane.wire.routing.ladder import Cost, KeptPart, Ladder, ResourceKind, Rung, WindowDrop

UNNAMED: Final = "The enabled shedding plan is not named by the description: it stays"


@dataclass(frozen=True)
class _Names:
    """Streams and queries of a cluster: ids and names."""

    streams: Mapping[int, str]
    queries: Mapping[int, str]

    def row(self, edge: Edge) -> dict[str, str] | None:
        """Return the names of an edge, None if its query is not described."""
        stream, query = edge
        if stream not in self.streams or (query != INPUT and query not in self.queries):
            return None
        return {"stream": self.streams[stream], "query": self.queries.get(query, "")}


def ladder_part(
    cluster: Cluster, streams: Mapping[int, str], queries: Mapping[int, str]
) -> LadderPart | None:
    """Return the armed ladder with names, without edges of queries that are not described.

    The activation of a rung is left out: it is bounded in time.
    """
    row = ArmedLadder.objects.filter(cluster=cluster).first()
    if row is None:
        return None
    ladder, names = row.value, _Names(streams, queries)
    return LadderPart(
        rungs=[RungPart(factor=rung.factor, kept=_kept(rung, names)) for rung in ladder.rungs],
        costs=[
            EdgeCostPart(**edge, resource=cost.kind.value, number=cost.number, seconds=cost.seconds)
            for cost in ladder.costs
            if (edge := names.row((cost.stream, cost.query))) is not None
        ],
        windows=[
            EdgeWindowPart(
                **edge,
                window_s=window.window_ms / 1000,
                slide_s=None if window.slide_ms == window.window_ms else window.slide_ms / 1000,
                batch=window.batch,
            )
            for window in ladder.windows
            if (edge := names.row((window.stream, window.query))) is not None
        ],
        limit=ladder.limit,
        hold_s=ladder.hold_ms / 1000,
        drain_s=ladder.drain_ms / 1000,
        empty_batch_s=None if ladder.empty_batch_ms is None else ladder.empty_batch_ms / 1000,
        reason=row.reason,
    )


def _kept(rung: Rung, names: _Names) -> list[KeptEdgePart]:
    return [
        KeptEdgePart(**edge, part=kept.part)
        for kept in rung.kept
        if (edge := names.row((kept.stream, kept.query))) is not None
    ]


def apply_ladder(
    actor: Actor,
    cluster: Cluster,
    part: LadderPart | None,
    before: LadderPart | None,
    report: ApplyReport,
) -> None:
    """Arm the described ladder unless it is armed already. Raises `BadDescription`."""
    if part is None:
        report.left += [UNNAMED] if before is not None else []
        return
    if before is not None and part.model_copy(update={"reason": before.reason}) == before:
        return
    ladder = _ladder(cluster, part)
    try:
        ladder.check()
    except InconsistentDelta as error:
        raise BadDescription({"ladder": [f"Is not possible: {error}"]}) from None
    change = TopologyChange(
        f"{actor.name} enabled a described shedding plan of {len(ladder.rungs)} drop levels",
        "ladder.arm",
        cluster.slug,
        reason=part.reason,
        after=ladder_summary(ladder),
    )
    # The parts before have made routing versions.
    present = Cluster.objects.get(pk=cluster.pk)
    apply(present, [SetLadder(ladder)], change, actor=actor)


def _ladder(cluster: Cluster, part: LadderPart) -> Ladder:
    streams = dict(cluster.streams.values_list("name", "id"))
    live = cluster.queries.filter(state__in=(Query.State.PENDING, Query.State.RUNNING))
    queries = dict(live.values_list("name", "id"))

    def ids(edge: tuple[str, str]) -> Edge:
        stream, query = edge
        return streams[stream], queries[query] if query else INPUT

    return Ladder(
        tuple(
            Rung(rung.factor, tuple(KeptPart(*ids(row.edge), row.part) for row in rung.kept))
            for rung in part.rungs
        ),
        tuple(
            Cost(*ids(row.edge), ResourceKind(row.resource), row.number, row.seconds)
            for row in part.costs
        ),
        tuple(
            WindowDrop(
                *ids(row.edge), _ms(row.window_s), _ms(row.slide_s or row.window_s), row.batch
            )
            for row in part.windows
        ),
        part.limit,
        _ms(part.hold_s),
        _ms(part.drain_s),
        empty_batch_ms=None if part.empty_batch_s is None else _ms(part.empty_batch_s),
    )


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
