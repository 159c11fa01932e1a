"""Scenarios of demo clusters: disturbances that operators start, and that end by a time."""

from controlplane.clusters.scenarios.effects import SLOWED
from controlplane.clusters.scenarios.kinds import (
    DEFAULT_MINUTES,
    KINDS,
    LONGEST_MINUTES,
    ScenarioKind,
    kinds_of,
)
from controlplane.clusters.scenarios.listing import (
    newest_scenarios,
    open_scenarios,
    prune,
    scenario_by_id,
    scenarios_between,
)
from controlplane.clusters.scenarios.service import (
    end_scenario,
    reconcile_scenarios,
    start_scenario,
)
