"""Requests of plans by watch loops: the planner and its parameters."""

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
# States of a plan of the loops that was rejected or failed.
FRUITLESS: Final = (Proposal.State.REJECTED, Proposal.State.FAILED)


def planners_for(seen: Observation, loop: Loop) -> list[str]:
    """Return the applicable planners in order of preference."""
    only_placement = loop.name == "replication"
    planners = [MIGRATION] if seen.split_queries and not only_placement else []
    return [*planners, PLACEMENT] if seen.whole_queries else planners


def request_plan(seen: Observation, loop: Loop, planners: list[str]) -> Proposal:
    """Request a plan in the caller's transaction; return the proposal.

    If the last plan of the loops was rejected or failed, the next planner is used.
    """
    last = last_watch_proposal(seen.cluster)
    if last is not None and last.state in FRUITLESS and last.planner in planners[:-1]:
        planner = planners[planners.index(last.planner) + 1]
    else:
        planner = planners[0]
    return requests.request(WATCH, seen.cluster, "", _parameters(seen, planner), planner=planner)


def last_watch_proposal(cluster: Cluster) -> Proposal | None:
    """Return the newest proposal of the watch loops."""
    own = Proposal.objects.filter(cluster=cluster, origin=Proposal.Origin.WATCH, comparison=None)
    newest = own.order_by("-requested_at", "-id").defer("moves", "path", "before", "after")
    return newest.first()


def _parameters(seen: Observation, planner: str) -> dict[str, Any]:
    if planner == MIGRATION:
        return {"tau": max(0.01, min(1.0, PART * seen.policy.watch_imbalance))}
    return {}
