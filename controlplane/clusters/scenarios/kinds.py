"""The kinds of scenarios: their effects as sentences, and which of them need a node."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from controlplane.models import Cluster, Scenario

LONGEST_MINUTES: Final = 60
DEFAULT_MINUTES: Final = 10


@dataclass(frozen=True)
class ScenarioKind:
    """A kind of scenario; `effect`: what happens; `needs_node`: whether it is about one node."""

    name: str
    title: str
    effect: str
    needs_node: bool = False


KINDS: Final[Mapping[str, ScenarioKind]] = {
    kind.name: kind
    for kind in (
        ScenarioKind(
            Scenario.Kind.RUSH_HOUR, "Rush hour",
            "All streams have three times as many records.",
        ),
        ScenarioKind(
            Scenario.Kind.HOT_KEY, "Hot key",
            "One key of the busiest stream has as many records as all others together.",
        ),
        ScenarioKind(
            Scenario.Kind.SLOW_NODE, "Slow node",
            "A node processes at most a third of the records/s of its capacity.", needs_node=True,
        ),
        ScenarioKind(
            Scenario.Kind.NODE_LOST, "Node lost",
            "A node processes no records; they wait until it is back or its queries move.",
            needs_node=True,
        ),
        ScenarioKind(
            Scenario.Kind.NODE_ADDED, "Node added",
            "The cluster has another node, without queries until a plan moves some.",
        ),
    )
}  # fmt: skip


def kinds_of(cluster: Cluster) -> list[ScenarioKind]:
    """Return the scenarios that a cluster can have: none unless a demonstration feeds it."""
    return list(KINDS.values()) if cluster.demo else []
