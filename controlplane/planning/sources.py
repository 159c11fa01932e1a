"""What computes the actions of proposals: the adapters of planners, and the choices of people."""

from collections.abc import Mapping
from typing import Any, Protocol

from controlplane.planning.adapter import PlannerResult, Progress
from controlplane.planning.adapters import adapter_of, adapters
from controlplane.planning.manual import MANUAL, ManualPlans
from controlplane.planning.measures import Measure
from controlplane.plans.snapshot import ClusterSnapshot


class PlanSource(Protocol):
    """A planner's adapter, or the moves that a person has chosen."""

    @property
    def measures(self) -> tuple[Measure, ...]:
        """Return its own measures, besides the common ones."""

    def plan_for(
        self,
        algorithm: str,
        parameters: Mapping[str, Any],
        snapshot: ClusterSnapshot,
        progress: Progress,
    ) -> PlannerResult:
        """Return a plan for a snapshot with checked parameters. Raises `Conflict` without one."""


def source_of(planner: str) -> PlanSource:
    """Return what computes the proposals of a planner. Raises `Invalid` with the known names."""
    return ManualPlans() if planner == MANUAL else adapter_of(planner)


def source_names() -> tuple[str, ...]:
    """Return the planners of proposals, the manual plans last."""
    return (*adapters(), MANUAL)
