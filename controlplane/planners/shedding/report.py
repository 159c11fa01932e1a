"""The report on the ladder of a cluster: its rungs, what they keep, its position and its age."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import ceil
from typing import Final

from django.utils import timezone

from controlplane.errors import Conflict
from controlplane.models import ArmedLadder, Cluster, DisarmedLadder, Query
from controlplane.planners.shedding.arming import ladder_of
from controlplane.planners.shedding.inputs import SheddingInput, SheddingQuery
from controlplane.planners.shedding.measured import rung_latencies
from controlplane.planners.shedding.node_costs import NodeCost, costs_of
from controlplane.planners.shedding.observation import read_input
from controlplane.planners.shedding.problem import network_of
from controlplane.planners.shedding.quality import ResultQuality, kept_by, parts_at
from controlplane.planners.shedding.staleness import LadderDrift, drift_of
from controlplane.planners.shedding.windows import RandomReason, choose_windows
from controlplane.planning.snapshots import take_snapshot
from controlplane.plans.snapshot import ClusterSnapshot
from controlplane.policies.store import policy_of
from controlplane.telemetry.time_series import latest_values
from controlplane.wire.routing.compiled_ladder import compiled_ladder, rates_of
from controlplane.wire.routing.drop_rules import INPUT, Edge
from controlplane.wire.routing.ladder import Ladder

# Above so many queries a ladder that is not armed is computed on request only.
MOST_PREVIEWED: Final = 300
NOT_COMPUTED: Final = f"With more than {MOST_PREVIEWED:,} queries it is computed on request only"


@dataclass(frozen=True)
class EdgeDrop:
    """The part of a stream's records that an edge drops on a rung; `query`: "" for the input.

    `windows_s`: the length of the windows that are dropped whole, None for a sample of records;
    `random_reason`: why it drops no windows, None if it does or if that is not known.
    """

    stream: str
    query: str
    dropped: float
    windows_s: float | None
    random_reason: RandomReason | None = None


@dataclass(frozen=True)
class RungReport:
    """A rung of a ladder, 0 without drops.

    `factor`: the input factor from which it is needed in full; `input_kept`, `quality_lost`: parts;
    `least_query`, `least_kept`: the query that keeps the least, "" without queries. `p95_ms`: the
    latency while it was active in the last 7 days, None if it was not.
    """

    number: int
    factor: float
    drops: tuple[EdgeDrop, ...]
    input_kept: float
    quality_lost: float
    least_query: str
    least_kept: float
    is_active: bool
    p95_ms: float | None = None


@dataclass(frozen=True)
class SheddingQueryReport:
    """A query in load shedding; `kept`: the part of its records that each rung keeps, from 0."""

    id: int
    name: str
    weight: float
    floor: float
    kept: tuple[float, ...]


@dataclass(frozen=True)
class LadderReport:
    """The ladder of a cluster.

    `armed`: False if it was computed for this report, or is empty. `missing_code`, `missing`: why
    there is no ladder. `position`: the one that the data plane reports, None if it reports none;
    `factor`: the input over what the cluster can process. `input_per_s`: records/s of the streams
    that queries read. `capacity_per_s`: records/s of this mix that the cluster can process.
    `active_rung`: the one that a person activated, 0 for none, until `active_until`. `arm_at`: when
    Weir arms the ladder again that `disarmed_by` disarmed, None: never. `provisional`: costs are
    assumed up to a factor, so `factor` is at most the real one. `nodes`: the costs of the ladder.
    `empty_batch_s`: the time of a micro-batch without records, None: not measured;
    `longest_batch_s`: of one with which the p95 latency is within its bound.
    """

    armed: bool
    set_by: str = ""
    set_at: datetime | None = None
    reason: str = ""
    since_version: int = 0
    active_rung: int = 0
    active_until: datetime | None = None
    active_by: str = ""
    active_reason: str = ""
    arm_at: datetime | None = None
    disarmed_by: str = ""
    missing_code: str = ""
    missing: str = ""
    position: float | None = None
    factor: float | None = None
    input_per_s: float = 0.0
    capacity_per_s: float | None = None
    kept: ResultQuality | None = None
    hold_s: float = 0.0
    limit: float = 1.0
    drift: LadderDrift | None = None
    tolerated: float = 0.0
    provisional: bool = False
    nodes: tuple[NodeCost, ...] = ()
    empty_batch_s: float | None = None
    longest_batch_s: float = 0.0
    rungs: tuple[RungReport, ...] = ()
    queries: tuple[SheddingQueryReport, ...] = ()
    ladder: Ladder | None = field(default=None, repr=False)
    given: SheddingInput | None = field(default=None, repr=False)

    @property
    def rung(self) -> int | None:
        """Return the number of the active rung, None if it is not known."""
        return None if self.position is None else ceil(self.position)

    @property
    def is_bound_kept(self) -> bool:
        """Return whether micro-batches can be as short as the bound of the latency requires."""
        return self.empty_batch_s is None or 2 * self.empty_batch_s <= self.longest_batch_s

    @property
    def headroom(self) -> float | None:
        """Return how much more of the same mix the cluster can process, as a share."""
        return 1 / self.factor - 1 if self.factor else None


def ladder_report(cluster: Cluster) -> LadderReport:
    """Return the report on the armed ladder, or on the one that would be armed now."""
    report = _present(cluster)
    if not report.rungs:
        return report
    latencies = rung_latencies(cluster, timezone.now())
    rungs = [replace(rung, p95_ms=latencies.get(rung.number)) for rung in report.rungs]
    return replace(report, rungs=tuple(rungs))


def _present(cluster: Cluster) -> LadderReport:
    """Return the report without what was measured."""
    row = ArmedLadder.objects.filter(cluster=cluster).select_related("snapshot").first()
    if row is None:
        preview = _preview(cluster)
        waiting = DisarmedLadder.objects.filter(cluster=cluster).first()
        if waiting is None:
            return preview
        return replace(preview, arm_at=waiting.arm_at, disarmed_by=waiting.disarmed_by)
    now, policy = read_input(cluster), policy_of(cluster)
    snapshot = None if row.snapshot is None else row.snapshot.value()
    then = None if snapshot is None else snapshot.input(SheddingInput)
    drift = drift_of(row, now, policy.shedding_drift)
    sample = latest_values(cluster) or {}
    facts = {
        "armed": True, "set_by": row.set_by, "set_at": row.set_at, "reason": row.reason,
        "since_version": row.since_version, "drift": drift, "tolerated": policy.shedding_drift,
        "position": sample.get("ladder_position"), "active_rung": int(row.value.least),
        "active_until": row.active_until, "active_by": row.active_by,
        "active_reason": row.active_reason, "nodes": costs_of(snapshot),
    }  # fmt: skip
    return _report(row.value, then or now, now, facts, _reasons(snapshot, row.value))


def _preview(cluster: Cluster) -> LadderReport:
    """Return the report on the ladder that would be armed now."""
    running = cluster.queries.filter(state=Query.State.RUNNING).count()
    if running > MOST_PREVIEWED:
        return LadderReport(armed=False, missing_code="not_computed", missing=NOT_COMPUTED)
    snapshot = take_snapshot(cluster.pk, cluster.nu, {read_input})
    now = snapshot.input(SheddingInput)
    assert now is not None, "the snapshot is for this planner"
    try:
        ladder = ladder_of(snapshot)
    except Conflict as conflict:
        return LadderReport(
            armed=False, missing_code=conflict.code, missing=str(conflict), given=now,
            input_per_s=sum(now.rates.values()), nodes=costs_of(snapshot),
        )  # fmt: skip
    tolerated = policy_of(cluster).shedding_drift
    facts = {"armed": False, "tolerated": tolerated, "nodes": costs_of(snapshot)}
    return _report(ladder, now, now, facts, _reasons(snapshot, ladder))


def _reasons(snapshot: ClusterSnapshot | None, ladder: Ladder) -> Mapping[Edge, RandomReason]:
    """Return why edges drop no windows; nothing without a snapshot, or with too many queries."""
    given = None if snapshot is None else snapshot.input(SheddingInput)
    if snapshot is None or given is None or len(given.queries) > MOST_PREVIEWED:
        return {}
    try:
        return choose_windows(network_of(snapshot), given, ladder).reasons
    except Conflict:
        # An armed ladder that was imported is none of this snapshot.
        return {}


def _report(
    ladder: Ladder,
    then: SheddingInput,
    now: SheddingInput,
    facts: Mapping[str, object],
    reasons: Mapping[Edge, RandomReason],
) -> LadderReport:
    position = facts.get("position")
    factor = factor_of(ladder, now.rates)
    total = sum(now.rates.values())
    parts = {} if not isinstance(position, float | int) else parts_at(ladder, position)
    names = names_of(then)
    rungs, kept = _rungs(ladder, then, names, position, reasons)
    return LadderReport(
        **facts,  # type: ignore[arg-type]
        factor=factor,
        input_per_s=total,
        capacity_per_s=total / factor if factor else None,
        kept=kept_by(parts, now.queries, now.rates),
        hold_s=ladder.hold_ms / 1000,
        limit=ladder.limit,
        provisional=ladder.is_provisional,
        empty_batch_s=empty_batch_s(then),
        longest_batch_s=then.settings.batch_s,
        rungs=rungs,
        queries=_queries(then.queries, names, kept),
        ladder=ladder,
        given=now,
    )


def empty_batch_s(given: SheddingInput) -> float | None:
    """Return the time of a micro-batch without records, None if none was measured."""
    if given.batch is None:
        return None
    fixed_s = max((node.fixed_s for node in given.nodes), default=0.0)
    return given.batch.outside_s + given.batch.growth * fixed_s


def factor_of(ladder: Ladder, rates: Mapping[int, float]) -> float:
    """Return the input over what the cluster can process by the costs of a ladder."""
    compiled = compiled_ladder(ladder)
    loads = compiled.loads(rates_of(compiled.streams, rates))[:, 0]
    return float(loads.max(initial=0.0)) / ladder.limit


def names_of(given: SheddingInput) -> dict[int, str]:
    """Return the names of the queries of an input by id."""
    ids = [query.id for query in given.queries]
    return dict(Query.objects.filter(pk__in=ids).values_list("pk", "name"))


def _rungs(
    ladder: Ladder,
    given: SheddingInput,
    names: Mapping[int, str],
    position: object,
    reasons: Mapping[Edge, RandomReason],
) -> tuple[tuple[RungReport, ...], list[ResultQuality]]:
    active = ceil(position) if isinstance(position, float | int) else None
    streams = {stream.id: stream.name for stream in given.streams}
    windows = {(row.stream, row.query): row.window_ms / 1000 for row in ladder.windows}
    reports, all_kept = [], []
    for number in range(len(ladder.rungs) + 1):
        parts = parts_at(ladder, number)
        kept = kept_by(parts, given.queries, given.rates)
        query, least = kept.least or (0, 1.0)
        drops = [
            EdgeDrop(
                streams.get(stream, f"stream {stream}"),
                "" if reader == INPUT else names.get(reader, f"query {reader}"),
                1 - part,
                windows.get((stream, reader)),
                None if (stream, reader) in windows else reasons.get((stream, reader)),
            )
            for (stream, reader), part in sorted(parts.items())
            if part < 1 and (reader == INPUT or part < parts.get((stream, INPUT), 1.0))
        ]
        all_kept.append(kept)
        reports.append(
            RungReport(
                number,
                ladder.rungs[number - 1].factor if number else 1.0,
                tuple(sorted(drops, key=lambda drop: -drop.dropped)),
                kept.input,
                kept.quality_lost,
                names.get(query, ""),
                least,
                number == active,
            )
        )
    return tuple(reports), all_kept


def _queries(
    queries: Sequence[SheddingQuery], names: Mapping[int, str], kept: Sequence[ResultQuality]
) -> tuple[SheddingQueryReport, ...]:
    rows = [
        SheddingQueryReport(
            query.id,
            names[query.id],
            query.weight,
            query.floor,
            tuple(rung.queries[query.id] for rung in kept),
        )
        for query in queries
        if query.id in names
    ]
    return tuple(sorted(rows, key=lambda row: (-row.weight, row.name)))
