"""Redirections of partitions: planned for the next period, applied, and as they were."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from django.utils import timezone

from algorithms.admission.planner import PLANNER
from algorithms.admission.problem import AdmissionPlan, AdmissionProblem
from controlplane.access.roles import Automatic
from controlplane.catalog.split_reading import assignment_of
from controlplane.models import Cluster, Exclusion, Redirection, Stream
from controlplane.numbers import counted
from controlplane.planners.admission.inputs import AdmissionInput
from controlplane.planners.admission.observation import read_input
from controlplane.planners.admission.problem import (
    Outlook,
    SplitProblem,
    actions_of,
    moves_of,
    plan_with_room,
)
from controlplane.policies.exclusions import live_exclusions
from controlplane.policies.settings import PolicySettings
from controlplane.topology.apply import TopologyChange, apply
from controlplane.topology.split_nodes import REDIRECT
from controlplane.wire.routing.actions import Action
from controlplane.wire.routing.split_assignment import SourcePartition

ADMISSION: Final = Automatic("admission")


@dataclass(frozen=True)
class PlannedRedirections:
    """The redirections of the next period.

    `actions`: in their order; `moves`: the target of each partition that they redirect. `worst`:
    the expected load of the fullest split node over its capacity, `fullest`: its index, both before
    the plan. `opened`, `closed`: numbers of split nodes. `too_large`: the names of streams and
    partitions with a rate above the capacity of a split node. `refused`: how many redirections the
    limit of split nodes forbids.
    """

    actions: Sequence[Action]
    moves: Mapping[SourcePartition, int]
    worst: float
    fullest: int
    opened: int
    closed: int
    too_large: Sequence[str]
    refused: int

    @property
    def text(self) -> str:
        """Return how many streams and partitions are redirected."""
        partitions = sum(place.partition is not None for place in self.moves)
        streams = len(self.moves) - partitions
        counts = (streams, "streams"), (partitions, "partitions")
        return " and ".join(counted(number, name) for number, name in counts if number)


def plan_redirections(
    cluster: Cluster, policy: PolicySettings, given: AdmissionInput | None = None
) -> PlannedRedirections:
    """Return the redirections that the policy's strategy plans for the next period.

    `given`: the input of the planner, if it was read before. Raises `Conflict` no_capacity.
    """
    given = given or read_input(cluster)
    solve, assignment = _strategy(policy).solve, assignment_of(cluster)
    known = {stream.id for stream in given.streams}
    excluded = _excluded(cluster) | (assignment.splits.keys() - known)
    split, plan = plan_with_room(solve, given, assignment, Outlook(), fixed=excluded, cut=True)
    limited, refused = _limited(split, plan, policy.split_nodes)
    used = set(limited.assignment.tolist())
    loads = split.problem.loads(split.problem.predictions.expected).max(axis=1)
    shares = loads / np.maximum(split.problem.capacities, 1e-9)
    fullest = int(shares.argmax()) if len(shares) else 0
    return PlannedRedirections(
        actions=actions_of(split, limited, cluster.splits),
        moves=moves_of(split, limited),
        worst=float(shares.max(initial=0.0)),
        fullest=split.splits[fullest] if len(shares) else 0,
        opened=sum(node >= len(split.splits) for node in used),
        closed=sum(node not in used for node in range(len(split.splits))),
        too_large=_too_large(split.problem, given.capacity),
        refused=refused,
    )


def _strategy(policy: PolicySettings) -> Any:
    kind = PLANNER.algorithm(policy.redirect_strategy).parameters
    return kind.from_mapping(
        {
            "latency_s": policy.redirect_latency_s,
            "foresee": True,
            "consolidate": policy.close_split_nodes,
        }
    )


def _limited(split: SplitProblem, plan: AdmissionPlan, most: int) -> tuple[AdmissionPlan, int]:
    """Return the plan with at most `most` split nodes, and how many redirections this forbids.

    A stream that would open a split node beyond the limit stays where it is.
    """
    held = len(split.held - set(split.splits))
    allowed = max(0, most - held - len(split.splits))
    beyond = plan.assignment >= len(split.splits) + allowed
    if not beyond.any():
        return plan, 0
    assignment = np.where(beyond, split.problem.owner, plan.assignment)
    nodes = min(plan.nodes, len(split.splits) + allowed)
    return AdmissionPlan.of(split.problem, assignment, nodes), int(beyond.sum())


def _too_large(problem: AdmissionProblem, capacity: float) -> list[str]:
    full = np.flatnonzero(problem.predictions.average >= capacity)
    return [problem.name(place) for place in full.tolist()]


def _excluded(cluster: Cluster) -> set[int]:
    names = live_exclusions(cluster, timezone.now()).filter(kind=Exclusion.Kind.STREAM)
    wanted = cluster.streams.filter(name__in=names.values_list("subject", flat=True))
    return set(wanted.values_list("id", flat=True))


def apply_redirections(cluster: Cluster, planned: PlannedRedirections, summary: str) -> int:
    """Apply planned redirections as one routing version; return the version.

    Raises `VersionMoved` if the cluster changed since it was read.
    """
    after = {"redirected": len(planned.moves), "opened": planned.opened, "closed": planned.closed}
    change = TopologyChange(summary, REDIRECT, cluster.slug, after=after)
    return apply(cluster, planned.actions, change, actor=ADMISSION).version.version


def redirections_of(stream: Stream, count: int = 20) -> list[Redirection]:
    """Return the newest redirections of a stream, the newest first."""
    return list(stream.redirections.all()[:count])
