"""The trade of gain against moves: what plans reach at several limits of the imbalance.

It is computed before a request, and kept for a minute.
"""

import json
import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Final, Self

from django.utils import timezone

from algorithms import optimizers
from algorithms.errors import PlanningError
from algorithms.placement.improve import Improve
from controlplane.child_processes.errors import ChildDied, Exhausted
from controlplane.connections import redis_client
from controlplane.errors import Conflict
from controlplane.events.task_names import COMPUTE_TRADE, send_on_commit
from controlplane.models import Cluster
from controlplane.planners.placement.improvement import (
    aimed_limits,
    improve_problem,
    moves_of,
)
from controlplane.planners.placement.observation import read_input
from controlplane.planning.adapter import Progress
from controlplane.planning.execution_plan import ExecutionCost, StepLimits, estimate_cost
from controlplane.planning.load_model import LoadModel
from controlplane.planning.resolution import resolve
from controlplane.planning.snapshots import take_snapshot
from controlplane.plans.snapshot import ClusterSnapshot
from controlplane.policies.store import limits_of, policy_of
from controlplane.processes.isolation.child import run_in_child
from controlplane.processes.isolation.limits import proposal_limits
from controlplane.proposals.computation import step_seconds
from controlplane.wire import keys

logger = logging.getLogger(__name__)

SLACKS: Final = (0.05, 0.1, 0.2, 0.4)
KEEP_S: Final = 60
# The search of one plan.
_SEARCH_S: Final = 15.0
# Seconds after which another worker is requested.
_WAIT_S: Final = 120


@dataclass(frozen=True)
class TradePoint:
    """What a plan reaches whose imbalance is at most `slack`, and what it costs.

    `is_allowed`: whether the policy allows so much imbalance. `is_kept`: whether the plan exceeds
    no limit.
    """

    slack: float
    is_allowed: bool
    is_kept: bool
    moves: int
    replication_factor: float
    imbalance: float
    fullest: float
    bytes: int
    pause_ms: float
    seconds: float


@dataclass(frozen=True)
class Trade:
    """The trade of a cluster as it was at a time, in ms; `refusal`: why there is none, or "".

    `limit`: of the replication factor, None without one; `curve`: the moves and the replication
    factors of plans at the policy's limit of the imbalance, from none on.
    """

    at_ms: int
    took_s: float = 0.0
    queries: int = 0
    limit: float | None = None
    curve: Sequence[tuple[int, float]] = ()
    points: Sequence[TradePoint] = ()
    refusal: str = ""

    @property
    def computed_at(self) -> datetime:
        """Return when it was computed."""
        return datetime.fromtimestamp(self.at_ms / 1000, tz=timezone.get_default_timezone())

    @property
    def recommended(self) -> TradePoint | None:
        """Return the plan with the fewest moves that keeps all limits, None without one."""
        kept = [point for point in self.points if point.is_allowed and point.is_kept]
        return min(kept, key=lambda point: (point.moves, point.replication_factor), default=None)

    @classmethod
    def from_json(cls, row: dict[str, Any]) -> Self:
        """Return the trade of JSON values."""
        points = [TradePoint(**point) for point in row["points"]]
        return cls(**{**row, "points": points, "curve": [tuple(pair) for pair in row["curve"]]})


def trade_of(cluster: Cluster) -> Trade | None:
    """Return the trade of the last minute, None while a worker computes it."""
    client = redis_client()
    kept = client.get(keys.trade_key(cluster.slug))
    if kept is not None:
        return Trade.from_json(json.loads(kept))
    if client.set(keys.trade_request_key(cluster.slug), b"", nx=True, ex=_WAIT_S):
        send_on_commit(COMPUTE_TRADE, cluster.pk, expires_s=_WAIT_S)
    return None


def compute_trade(cluster_id: int) -> None:
    """Compute and keep the trade of a cluster."""
    cluster = Cluster.objects.filter(pk=cluster_id).first()
    if cluster is None:
        return
    trade = _computed(cluster)
    client = redis_client()
    client.set(keys.trade_key(cluster.slug), json.dumps(asdict(trade)), ex=KEEP_S)
    client.delete(keys.trade_request_key(cluster.slug))


def _computed(cluster: Cluster) -> Trade:
    started, step_limits = time.monotonic(), limits_of(policy_of(cluster))
    now_ms = round(timezone.now().timestamp() * 1000)
    try:
        snapshot = take_snapshot(cluster.pk, cluster.nu, [read_input])
        optimizers.load()
        work = _Plans(snapshot, step_limits, step_seconds(cluster))
        trade = run_in_child(work.trade, proposal_limits())
    except (Conflict, PlanningError, Exhausted, ChildDied) as impossible:
        logger.info("The trade of %s cannot be computed: %s", cluster.slug, impossible)
        return Trade(now_ms, refusal=str(impossible))
    return replace(trade, at_ms=now_ms, took_s=time.monotonic() - started)


@dataclass(frozen=True)
class _Plans:
    """The plans of a snapshot at several limits of the imbalance."""

    snapshot: ClusterSnapshot
    step_limits: StepLimits
    step_s: float

    def trade(self, progress: Progress) -> Trade:
        """Return the trade, without its time."""
        model = LoadModel.of(self.snapshot)
        problem = improve_problem(self.snapshot, model)
        allowed, limit = problem.limits.imbalance, problem.limits.replication
        aimed = replace(problem, limits=aimed_limits(self.snapshot, problem))
        now = problem.measured(problem.present)
        points, curve = [], [(0, now.replication)]
        for slack in self._slacks(allowed):
            limits = problem.limits._replace(imbalance=slack)
            # The plan of the policy's own limit is the one of a request without a limit.
            given = None if slack == allowed else slack
            plan = Improve(imbalance=given, seconds=_SEARCH_S).solve(aimed, progress)
            cost = self._cost(moves_of(model, problem.present, plan.assignment))
            points.append(
                TradePoint(
                    slack, slack <= allowed, not any(limits.exceedances(plan.measured)),
                    cost.moves, *plan.measured, cost.bytes, cost.pause_ms, cost.seconds,
                )
            )  # fmt: skip
            if slack == allowed:
                curve += [(point.moves, point.measured.replication) for point in plan.curve]
        return Trade(
            0, queries=self.snapshot.query_count, limit=limit if limit < float("inf") else None,
            curve=curve, points=points,
        )  # fmt: skip

    def _slacks(self, allowed: float) -> Iterator[float]:
        """Yield the limits of the imbalance, the policy's among them."""
        yield from sorted({*SLACKS, allowed})

    def _cost(self, moves: Sequence[Any]) -> ExecutionCost:
        return estimate_cost(resolve(self.snapshot, moves), self.step_limits, self.step_s)
