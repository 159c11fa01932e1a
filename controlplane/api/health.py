"""The health of Weir itself: GET /health for members, and /readyz for probes without a login."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from ninja import Router, Schema

from controlplane.access.roles import require_member
from controlplane.api.common.schemas import below, dataclass_schema
from controlplane.api.common.security import caller
from controlplane.health.liveness.readings import QueueReading
from controlplane.health.liveness.status import full_status, readiness
from controlplane.models import Cluster
from controlplane.processes.runtime.beats import ChildReport

router = Router(tags=["health"])


class ProcessOut(Schema):
    """A process of Weir, a cluster's driver, Redis or the database.

    state: running, silent, or unknown while Redis, which has the heartbeats, does not respond.
    since: the last heartbeat, null before the first; silent_s: the time since then if it is silent.
    effect: what does not happen without it; essential: whether Weir is not ready without it.
    cluster: of a driver, else ""; host: the host of its agent, "" if no agent has the cluster.
    """

    process: str = below("kind.name")
    title: str = below("kind.title")
    effect: str = below("kind.effect")
    essential: bool = below("kind.is_essential")
    state: str
    since: datetime | None
    silent_s: float | None
    cluster: str
    host: str


class SiteHealthOut(Schema):
    """The health of Weir; problems: a sentence for each; ready: nothing essential is missing."""

    ready: bool = below("is_ready")
    problems: list[str]
    processes: list[ProcessOut]
    children: list[dataclass_schema(ChildReport)]  # type: ignore[valid-type]
    queues: list[dataclass_schema(QueueReading)]  # type: ignore[valid-type]


@router.get("", response=SiteHealthOut)
def get_site_health(request: HttpRequest) -> Any:
    """Return the health of Weir's processes, with the drivers of visible clusters."""
    actor = caller(request)
    require_member(actor)
    clusters = Cluster.objects.order_by("slug")
    if actor.clusters is not None:
        clusters = clusters.filter(pk__in=actor.clusters)
    return full_status(clusters)


@never_cache
@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """Return 200 if nothing essential is missing, else 503, with what is missing since when.

    Without a login it names kinds of processes only, no cluster.
    """
    status = readiness()
    missing = [row for row in status.processes if row.is_missing]
    content = {
        "ready": status.is_ready,
        "missing": [
            {"process": row.kind.name, "since": row.since, "effect": row.kind.effect}
            for row in missing
        ],
    }
    return JsonResponse(content, status=200 if status.is_ready else 503)
