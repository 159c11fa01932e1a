"""Work on the snapshot of a running cluster: requested once, done by a child of a worker."""

from collections.abc import Callable
from typing import Final, TypeVar

from algorithms import optimizers
from algorithms.errors import PlanningError
from controlplane.child_processes.errors import ChildDied, Exhausted
from controlplane.connections import redis_client
from controlplane.errors import Conflict
from controlplane.events.task_names import send_on_commit
from controlplane.models import Cluster
from controlplane.planners.placement.observation import read_input
from controlplane.planning.adapter import Progress
from controlplane.planning.snapshots import take_snapshot
from controlplane.plans.snapshot import ClusterSnapshot
from controlplane.processes.isolation.child import run_in_child
from controlplane.processes.isolation.limits import proposal_limits

_Result = TypeVar("_Result")
# What `computed` raises where the work is not possible, or takes too much.
IMPOSSIBLE: Final = (Conflict, PlanningError, Exhausted, ChildDied)


def request_work(task: str, cluster: Cluster, key: str, wait_s: int) -> None:
    """Have a worker run a task for a cluster; `key`: of the mark that keeps others from it."""
    if redis_client().set(key, b"", nx=True, ex=wait_s):
        send_on_commit(task, cluster.pk, expires_s=wait_s)


def computed(
    cluster: Cluster, work: Callable[[ClusterSnapshot, Progress], _Result]
) -> tuple[ClusterSnapshot, _Result]:
    """Return the snapshot of a cluster as it is now, and what a child process computes of it."""
    snapshot = take_snapshot(cluster.pk, cluster.nu, [read_input])
    optimizers.load()
    return snapshot, run_in_child(lambda progress: work(snapshot, progress), proposal_limits())
