"""Comparisons: lookup by id, pages, and the table of the candidates' measures."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import le
from typing import Any

from django.db.models import Count, Q, QuerySet

from controlplane.models import Cluster, Comparison, Proposal
from controlplane.pagination.listing import NO_FILTERS, Filters, Listing
from controlplane.pagination.lookup import row_by
from controlplane.planning.measures import cluster_values, measures


@dataclass(frozen=True)
class Candidate:
    """A candidate of a comparison; figures are None until its plan is ready.

    `actions`, `moves`, `bytes`, `steps`, `seconds`, `pause_ms`: the predicted cost of its
    execution; `values`: measures by name; `bounds`: lower bounds by measure; `computed_s`: the
    computing time in seconds; `left_out`: actions that exclusions or the budget forbid; `pareto`:
    True if no other usable candidate dominates it in cost, imbalance and replication factor.
    """

    proposal: int
    planner: str
    algorithm: str
    parameters: dict[str, Any]
    budget: dict[str, float]
    state: str
    progress: float
    error: str
    seal: str
    bytes: int | None = None
    actions: int | None = None
    moves: int | None = None
    steps: int | None = None
    seconds: float | None = None
    pause_ms: float | None = None
    imbalance: float | None = None
    replication_factor: float | None = None
    values: dict[str, float] = field(default_factory=dict)
    bounds: dict[str, float] = field(default_factory=dict)
    computed_s: float | None = None
    left_out: int | None = None
    proven: bool | None = None
    pareto: bool = False

    @property
    def has_plan(self) -> bool:
        """Return whether the figures are known."""
        return self.bytes is not None


@dataclass(frozen=True)
class Compared:
    """A comparison with its candidates, and the cluster's present measures.

    `cost`: the figure that measures the cost of a plan: bytes, or moves if no state was measured.
    """

    comparison: Comparison
    candidates: list[Candidate]
    imbalance: float
    replication_factor: float | None
    cost: str = "bytes"

    @property
    def computing(self) -> int:
        """Return the number of candidates that are being computed."""
        return sum(candidate.state == Proposal.State.COMPUTING for candidate in self.candidates)


def comparison_by_id(cluster: Cluster, pk: int) -> Comparison:
    """Return a comparison of the cluster; raises `NotFound`."""
    comparisons = Comparison.objects.select_related("cluster", "snapshot_row")
    return row_by(comparisons.filter(cluster=cluster), "comparison", pk=pk)


def comparisons_listing(
    cluster: Cluster, filters: Filters = NO_FILTERS
) -> Listing[Comparison, Comparison]:
    """Return the comparisons, the newest first; each has the counts `total` and `computing`."""
    computing = Count("candidates", filter=Q(candidates__state=Proposal.State.COMPUTING))
    comparisons: QuerySet[Comparison] = Comparison.objects.filter(cluster=cluster).annotate(
        total=Count("candidates"), computing=computing
    )
    return Listing(comparisons, ("-pk",), list, filters)


def compared(comparison: Comparison) -> Compared:
    """Return the table of a comparison, in the order of the request."""
    rows = list(
        comparison.candidates.defer("actions", "imbalance_after", "before", "drift").order_by("pk")
    )
    known = [row for row in rows if row.predicted]
    cost = "bytes" if any(row.predicted["bytes"] for row in known) else "moves"
    # A plan that is not better than the cluster as it is is not a choice.
    kept = _pareto([row for row in known if not row.judgement], cost)
    snapshot = comparison.snapshot_row.value() if comparison.snapshot_row else None
    now = measures(snapshot) if snapshot is not None else {}
    return Compared(
        comparison,
        [_candidate(row, is_pareto=row.pk in kept) for row in rows],
        now.get("imbalance", 0.0),
        now.get("replication_factor"),
        cost,
    )


def _pareto(known: list[Proposal], cost: str) -> set[int]:
    points = [
        (
            float(row.predicted[cost]),
            float(row.predicted["imbalance"]),
            float(row.predicted["replication_factor"] or 0.0),
        )
        for row in known
    ]
    return {row.pk for row, kept in zip(known, pareto(points), strict=True) if kept}


def _candidate(row: Proposal, *, is_pareto: bool) -> Candidate:
    predicted = row.predicted
    names = (
        "bytes", "actions", "moves", "steps", "seconds", "pause_ms", "imbalance",
        "replication_factor", "computed_s", "left_out",
    )  # fmt: skip
    return Candidate(
        proposal=row.pk,
        planner=row.planner,
        algorithm=row.algorithm,
        parameters={name: value for name, value in row.parameters.items() if name != "budget"},
        budget=row.parameters.get("budget", {}),
        state=row.state,
        progress=row.progress,
        error=row.error,
        seal=row.seal,
        values=cluster_values(row.after),
        bounds=row.bounds,
        proven=predicted.get("budget", {}).get("proven"),
        pareto=is_pareto,
        **{name: predicted.get(name) for name in names},
    )


Point = tuple[float, ...]


def pareto(points: Sequence[Point]) -> list[bool]:
    """Return for each point whether no other point dominates it.

    A point dominates another if no figure is larger and one is smaller. A dominating point precedes
    the other one in lexicographic order, so each point is compared with earlier optimal ones.
    """
    order = sorted(range(len(points)), key=points.__getitem__)
    front: list[Point] = []
    kept = [False] * len(points)
    for place in order:
        point = points[place]
        if not any(other != point and all(map(le, other, point)) for other in front):
            front.append(point)
            kept[place] = True
    return kept
