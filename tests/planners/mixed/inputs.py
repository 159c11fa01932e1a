"""What the planner observes: how long queries have been running."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from django.utils import timezone

from controlplane.models import Cluster, Query


@dataclass(frozen=True)
class MixedInput:
    """The ages of the running queries in seconds, by id."""

    ages: Mapping[int, float]
    name: ClassVar[str] = "mixed"

    def to_json(self) -> dict[str, Any]:
        """Return the input as JSON values."""
        return {"ages": list(self.ages.items())}

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Self:
        """Return the input that `to_json` wrote."""
        return cls(dict(row["ages"]))


def read_ages(cluster: Cluster) -> MixedInput:
    """Return the ages of the running queries of a cluster."""
    now = timezone.now()
    rows = Query.objects.filter(cluster=cluster, state=Query.State.RUNNING).order_by("id")
    started = rows.values_list("id", "submitted_at")
    return MixedInput({query: round((now - at).total_seconds(), 3) for query, at in started})
