"""Estimates of computations against the limits, before they are accepted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Sum

from algorithms.estimates import MB, Estimate, ProblemSize, total
from algorithms.planner import Algorithm
from algorithms.reductions import reducible
from controlplane.child_processes.confinement import Limits
from controlplane.errors import Fields, TooExpensive
from controlplane.models import Cluster, Query
from controlplane.planning.adapter import Defaults
from controlplane.processes.isolation.limits import proposal_limits


@dataclass(frozen=True)
class ShownEstimate:
    """An estimate beside its limits; bytes and seconds."""

    bytes: int
    seconds: float
    limit_bytes: int
    limit_seconds: float

    @classmethod
    def of(cls, need: Estimate, limits: Limits) -> "ShownEstimate":
        """Return an estimate with its limits."""
        return cls(round(need.bytes), round(need.seconds, 1), limits.memory_bytes, limits.seconds)


def require_affordable_plan(
    chosen: Algorithm, parameters: Mapping[str, Any], cluster: Defaults
) -> Estimate:
    """Return the estimate of a plan for a cluster. Raises `TooExpensive` beyond the limits."""
    size = size_of(cluster)
    fields = chosen.parameters.fields()
    own = {field.name: parameters[field.name] for field in fields if field.name in parameters}

    def estimate(values: Mapping[str, Any]) -> Estimate:
        return total([chosen.parameters.from_mapping(values).estimate(size)])

    need = estimate(own)
    if need.exceeds(proposal_limits().memory_bytes, proposal_limits().seconds):
        raise too_expensive(need, proposal_limits(), reducible(fields, own, estimate), "algorithm")
    return need


def size_of(cluster: Defaults) -> ProblemSize:
    """Return the size of a cluster as planners see it; 0 of each for one without rows."""
    if not isinstance(cluster, Cluster):
        return ProblemSize(0, 0, 0, 0)
    live = cluster.queries.filter(state=Query.State.RUNNING)
    # Stored with the streams: to count those of 100,000 queries took 88 ms.
    streams = cluster.streams.aggregate(number=Count("pk"), readings=Sum("reader_count"))
    return ProblemSize(
        live.count(), streams["readings"] or 0, streams["number"], cluster.nodes.count()
    )


def too_expensive(
    need: Estimate, limits: Limits, names: Sequence[str], otherwise: str
) -> TooExpensive:
    """Return the refusal of a computation, with the parameters that lower its estimate."""
    limit = Estimate(limits.memory_bytes, limits.seconds)
    message = (
        f"The computation would need about {need.bytes / MB:,.0f} MB of memory and "
        f"{need.seconds:,.0f} s; the limits are {limit.bytes / MB:,.0f} MB and "
        f"{limit.seconds:,.0f} s"
    )
    fields: Fields = {name: [f"Reduce it: {message[0].lower()}{message[1:]}"] for name in names}
    data = {"estimate": need.to_json(), "limit": limit.to_json(), "reduce": list(names)}
    return TooExpensive(fields or {otherwise: [message]}, message, data)
