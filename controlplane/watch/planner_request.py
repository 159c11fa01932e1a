"""Asking a planner for what a loop found: which planner, with which parameters."""

from typing import Any, Final

from algorithms.migration.planner import MIGRATION
from algorithms.registry import PLACEMENT
from controlplane.access.roles import Automatic
from controlplane.models import Cluster, Proposal
from controlplane.proposals import requests
from controlplane.watch.loops import Loop
from controlplane.watch.observation import Observation

WATCH: Final = Automatic("watch")
# Half of the imbalance that is acted on: the plan must not end right at the bound.
PART: Final = 0.5
# How a plan of the loops ends that was not worth proposing, or that people did not want.
FRUITLESS: Final = (Proposal.State.REJECTED, Proposal.State.FAILED)


def planners_for(seen: Observation, loop: Loop) -> list[str]:
    """Return the planners that could help, the first choice first."""
    only_placement = loop.name == "replication"
    planners = [MIGRATION] if seen.split_queries and not only_placement else []
    return [*planners, PLACEMENT] if seen.whole_queries else planners


def request_plan(seen: Observation, loop: Loop, planners: list[str]) -> Proposal:
    """Ask a planner for a plan, in the caller's transaction; returns the proposal.

    Where the last plan of the loops came to nothing, another planner has its turn.
    """
    last = last_watch_proposal(seen.cluster)
    if last is not None and last.state in FRUITLESS and last.planner in planners[:-1]:
        planner = planners[planners.index(last.planner) + 1]
    else:
        planner = planners[0]
    return requests.request(WATCH, seen.cluster, "", _parameters(seen, planner), planner=planner)


def last_watch_proposal(cluster: Cluster) -> Proposal | None:
    """Return the last proposal that the loops asked for."""
    own = Proposal.objects.filter(cluster=cluster, origin=Proposal.Origin.WATCH, comparison=None)
    newest = own.order_by("-requested_at", "-id").defer("moves", "path", "before", "after")
    return newest.first()


def _parameters(seen: Observation, planner: str) -> dict[str, Any]:
    if planner == MIGRATION:
        return {"tau": max(0.01, min(1.0, PART * seen.policy.watch_imbalance))}
    return {}
