"""Requests of the watch loops: choice of planner and parameters."""

from collections.abc import Sequence
from typing import Any, Final

from django.db.models import QuerySet

from controlplane.access.roles import Automatic
from controlplane.models import Cluster, Proposal
from controlplane.planning.adapter import WatchSupport
from controlplane.planning.adapters import adapters, missing_for
from controlplane.policies.settings import PolicySettings
from controlplane.proposals import requests
from controlplane.watch.loop import WatchLoop
from controlplane.watch.observation import ClusterObservation

WATCH: Final = Automatic("watch")
OPEN: Final = (Proposal.State.COMPUTING, Proposal.State.READY)
# The states of plans that were rejected or failed.
FRUITLESS: Final = (
    Proposal.State.REJECTED, Proposal.State.FAILED, Proposal.State.NO_BETTER_PLAN,
)  # fmt: skip


def planners_for(observed: ClusterObservation, loop: WatchLoop) -> list[str]:
    """Return the planners that serve a loop and can plan for the cluster, the best one first."""
    candidates: list[tuple[WatchSupport, str]] = []
    for adapter in adapters().values():
        watch = adapter.watch
        if watch is None or loop.name not in watch.loops:
            continue
        if missing_for(observed.cluster, adapter) is None:
            candidates.append((watch, adapter.name))
    return [name for _, name in sorted(candidates, key=lambda pair: pair[0].order)]


def request_plan(
    observed: ClusterObservation, loop: WatchLoop, planners: list[str], troubled: Sequence[str]
) -> Proposal:
    """Request a plan in the caller's transaction; return the proposal.

    `troubled`: the measures of all loops in trouble, of which it must improve one.
    If the last plan of the loops was rejected or failed, the next planner is chosen.
    """
    last = watch_proposals(observed.cluster).first()
    if last is not None and last.state in FRUITLESS and last.planner in planners[:-1]:
        planner = planners[planners.index(last.planner) + 1]
    else:
        planner = planners[0]
    parameters = plan_parameters(planner, loop, observed.policy)
    # Tasks must leave a lost node at any cost, and an armed ladder must be up to date.
    aims = list(dict.fromkeys([loop.measure, *troubled])) if loop.measure else []
    return requests.request(WATCH, observed.cluster, "", parameters, planner=planner, aims=aims)


def plan_parameters(planner: str, loop: WatchLoop, policy: PolicySettings) -> dict[str, Any]:
    """Return the parameters of a plan of a planner for a loop."""
    watch = adapters()[planner].watch
    return {} if watch is None else dict(watch.parameters(loop.name, loop.limit(policy)))


def watch_proposals(cluster: Cluster) -> QuerySet[Proposal]:
    """Return the proposals that the loops requested, the newest first."""
    own = Proposal.objects.filter(cluster=cluster, origin=Proposal.Origin.WATCH, comparison=None)
    return own.order_by("-requested_at", "-id").defer(*Proposal.HEAVY)
