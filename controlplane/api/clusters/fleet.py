"""The endpoint of the fleet: what each visible cluster has and does."""

from typing import Any

from django.http import HttpRequest
from ninja import Router

from controlplane.api.common.schemas import columns_of, shown
from controlplane.api.common.security import caller
from controlplane.health.fleet import fleet
from controlplane.models import Cluster

router = Router(tags=["clusters"])


class FleetClusterOut(columns_of(Cluster, "slug name desired state", under="cluster")):  # type: ignore[misc]
    """A cluster with its counts; waiting: proposals that wait for a decision.

    running and pending: queries. sample: the newest figures, null before the first.
    """

    model_config = shown("slug state nodes active_nodes streams running waiting")

    nodes: int
    active_nodes: int
    streams: int
    running: int
    pending: int
    waiting: int
    sample: dict[str, Any] | None


@router.get("", response=list[FleetClusterOut])
def list_fleet(request: HttpRequest) -> Any:
    """Return the visible clusters by slug, with their counts and newest figures."""
    return fleet(caller(request).clusters)
