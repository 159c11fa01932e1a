"""The limits that a policy has now for what placement changes, and whether they can be met."""

from dataclasses import dataclass

from controlplane.models import Cluster, ReachableMeasures
from controlplane.numbers import value_text
from controlplane.planning.adapters import all_measures
from controlplane.policies.measure_limits import REACHED, measure_limits, reachable_of, unreachable
from controlplane.policies.settings import PolicySettings


@dataclass(frozen=True)
class LimitRow:
    """A limit in words; `reached`: the best reachable value, "" before it was computed."""

    measure: str
    title: str
    limit: str
    reached: str
    is_unreachable: bool


def limit_rows(
    cluster: Cluster, policy: PolicySettings
) -> tuple[list[LimitRow], ReachableMeasures | None]:
    """Return the limits, and the values that they are compared with, None before the first."""
    reachable = reachable_of([cluster.pk]).get(cluster.pk)
    limits = measure_limits(policy, reachable)
    unmet = unreachable(limits, reachable)
    rows = [
        LimitRow(
            name, measure.title, value_text(limits.get(name), measure.unit),
            "" if reachable is None else value_text(getattr(reachable, name), measure.unit),
            name in unmet,
        )
        for name, measure in ((name, all_measures()[name]) for name in REACHED)
    ]  # fmt: skip
    return rows, reachable
