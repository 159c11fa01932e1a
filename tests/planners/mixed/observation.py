"""How the planner observes a cluster."""

from django.utils import timezone

from controlplane.models import Cluster, Query
from tests.planners.mixed.inputs import MixedInput


def read_input(cluster: Cluster) -> MixedInput:
    """Return the ages of the running queries of a cluster."""
    now = timezone.now()
    rows = Query.objects.filter(cluster=cluster, state=Query.State.RUNNING).order_by("id")
    started = rows.values_list("id", "submitted_at")
    return MixedInput({query: round((now - at).total_seconds(), 3) for query, at in started})
