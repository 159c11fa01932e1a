"""The names of the objects that the actions of a plan change."""

from collections.abc import Iterable

from controlplane.models import Cluster, Query, Stream
from controlplane.planning.action_text import Names
from controlplane.plans.plan import PlannedAction
from controlplane.wire.routing.actions import Kind


def names_of(cluster: Cluster, plan: Iterable[PlannedAction]) -> Names:
    """Return the names of the objects that these actions change, and of all nodes."""
    subjects = [subject for planned in plan for subject in planned.action.subjects()]
    queries = {subject.id for subject in subjects if subject.kind == Kind.QUERY}
    queries |= {subject.query for subject in subjects if subject.query}
    streams = {subject.id for subject in subjects if subject.kind in (Kind.STREAM, Kind.EDGE)}
    return Names(
        dict(Query.objects.filter(pk__in=queries).values_list("pk", "name")),
        dict(Stream.objects.filter(pk__in=streams).values_list("pk", "name")),
        dict(cluster.nodes.values_list("index", "name")),
    )
