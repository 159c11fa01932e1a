"""The connected planners: their algorithms, measures, and what a cluster lacks for a plan."""

from typing import Any

from django.http import HttpRequest
from ninja import Router, Schema

from controlplane.api.common.parameters import ParameterOut
from controlplane.api.common.schemas import below, fields_of
from controlplane.api.common.security import cluster_of
from controlplane.planning.adapter import Missing
from controlplane.planning.measures import Measure
from controlplane.proposals.requests import offered_planners

router = Router(tags=["proposals"])


class AlgorithmOut(Schema):
    """An algorithm of a planner; default: what an empty name asks for."""

    name: str = below("algorithm.name")
    title: str = below("algorithm.title")
    summary: str = below("algorithm.summary")
    default: bool
    parameters: list[ParameterOut] = below("fields")


class MeasureOut(fields_of(Measure, without="compute")):  # type: ignore[misc]
    """A measure of proposals; better: lower, higher or neither."""


class PlannerOut(Schema):
    """A connected planner: its algorithms, and the measures of its proposals.

    improves: the measures that define the gain of its plans. missing: what the cluster lacks for a
    plan of the default algorithm, null if nothing.
    """

    name: str = below("adapter.name")
    title: str = below("adapter.planner.title")
    hint: str = below("adapter.hint")
    moves_state: bool = below("adapter.moves_state")
    improves: list[str] = below("adapter.improves")
    algorithms: list[AlgorithmOut]
    measures: list[MeasureOut]
    missing: Missing | None


@router.get("/{slug}/planners", response=list[PlannerOut])
def list_planners(request: HttpRequest, slug: str) -> Any:
    """Return the connected planners with their algorithms, measures and the cluster's defaults."""
    return offered_planners(cluster_of(request))
