"""What the best placement of a running cluster reaches, from which default limits follow."""

import logging
import time
from dataclasses import replace
from datetime import datetime
from typing import Final

import numpy as np
from django.utils import timezone

from algorithms.balance import imbalance
from algorithms.placement.improve import Improve, Measured
from controlplane.errors import Conflict
from controlplane.events.task_names import COMPUTE_REACHABLE
from controlplane.models import Cluster, ReachableMeasures
from controlplane.planners.placement.improvement import improve_problem, lowered_limits
from controlplane.planners.placement.snapshot_work import IMPOSSIBLE, computed, request_work
from controlplane.planning.adapter import Progress
from controlplane.planning.load_model import LoadModel
from controlplane.plans.snapshot import ClusterSnapshot
from controlplane.policies.measure_limits import reachable_of
from controlplane.wire import keys

logger = logging.getLogger(__name__)

# Seconds before a new version makes the values stale: a single query changes them little.
KEEP_S: Final = 60
# Seconds for an unchanged version, as rates change.
KEEP_SAME_S: Final = 600
# At most a hundredth of the time goes into the computation.
KEEP_TIMES: Final = 100


def request_if_due(cluster: Cluster, now: datetime) -> None:
    """Have a worker compute what placement reaches, if that is not known or stale."""
    kept = reachable_of([cluster.pk]).get(cluster.pk)
    if cluster.desired == Cluster.Desired.RUNNING and is_due(cluster, kept, now):
        request_work(COMPUTE_REACHABLE, cluster, keys.reachable_key(cluster.slug), KEEP_S)


def is_due(cluster: Cluster, kept: ReachableMeasures | None, now: datetime) -> bool:
    """Return whether the values are missing or stale."""
    if kept is None:
        return True
    least = KEEP_SAME_S if kept.version == cluster.routing_version else KEEP_S
    age_s = (now - kept.computed_at).total_seconds()
    return age_s >= max(least, KEEP_TIMES * kept.took_s)


def compute_reachable(cluster_id: int) -> None:
    """Compute and store what placement reaches; do nothing if there is nothing to place."""
    cluster = Cluster.objects.filter(pk=cluster_id).first()
    if cluster is None:
        return
    started = time.monotonic()
    try:
        snapshot, reached = computed(cluster, reach)
    except IMPOSSIBLE as impossible:
        logger.info("What placement of %s reaches is not known: %s", cluster.slug, impossible)
        return
    ReachableMeasures.objects.update_or_create(
        cluster=cluster,
        defaults={
            "version": snapshot.version,
            "computed_at": timezone.now(),
            "took_s": time.monotonic() - started,
            "replication_factor": reached.replication,
            "imbalance": reached.imbalance,
            "fullest": reached.fullest,
        },
    )


def reach(snapshot: ClusterSnapshot, progress: Progress) -> Measured:
    """Return the measures of the best placement that is found, by the model of loads.

    The search is free to move any task, at no cost.
    """
    model = LoadModel.of(snapshot)
    problem = improve_problem(snapshot, model)
    if not problem.live:
        raise Conflict("no_records", "No query receives records")
    free = replace(
        problem,
        limits=lowered_limits(snapshot)._replace(replication=np.inf),
        costs=np.zeros(problem.units),
    )
    plan = Improve().solve(free, progress)
    # The search adds up parts of split queries that several of them may read.
    after = replace(model, nodes=plan.assignment.astype(np.int64))
    shares = after.loads / after.capacities
    return Measured(after.replication_factor or 0.0, imbalance(shares), float(shares.max()))
