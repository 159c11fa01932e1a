"""The kinds of scenarios: what they do, the alert that they raise, and the planner that helps."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from controlplane.models import Cluster, Scenario

LONGEST_MINUTES: Final = 60
DEFAULT_MINUTES: Final = 20


@dataclass(frozen=True)
class ScenarioKind:
    """A kind of scenario.

    `effect`: what happens; `needs_node`: whether it is about one node. `planner`: the one whose
    plan ends the alert, "" if no plan is part of the scenario; `alerts`: the subjects of the alerts
    of which at least one fires; `plan`: what the recommended plan does; `outcome`: what is better
    after it.
    """

    name: str
    title: str
    effect: str
    needs_node: bool = False
    planner: str = ""
    alerts: tuple[str, ...] = ()
    plan: str = ""
    outcome: str = ""


KINDS: Final[Mapping[str, ScenarioKind]] = {
    kind.name: kind
    for kind in (
        ScenarioKind(
            Scenario.Kind.UNEVEN_QUERIES, "Uneven queries",
            "Half of the queries of the other nodes gather on one node, and records rise.",
            needs_node=True, planner="placement",
            alerts=("imbalance",),
            plan="moves few queries to other nodes",
            outcome="the imbalance is within its limit",
        ),
        ScenarioKind(
            Scenario.Kind.NODE_RETURNS, "Nodes return",
            "Half of the nodes leave. They are back without work when a query of several tasks"
            " runs on the others, and streams that few other queries read have risen.",
            planner="migration",
            alerts=("imbalance",),
            plan="moves tasks of that query with their state to the nodes that are back",
            outcome="the imbalance is within its limit",
        ),
        ScenarioKind(
            Scenario.Kind.HOT_KEY, "Hot key",
            "One key of a stream that few queries read gets more records than a node has room for.",
            planner="partitioning",
            alerts=("imbalance", "node_load"),
            plan="spreads the records of the key over several tasks",
            outcome="the skew of the query and the load of its fullest node are lower",
        ),
        ScenarioKind(
            Scenario.Kind.GROWING_STREAM, "Growing stream",
            "The busiest stream grows until its split node cannot read all of its streams.",
            planner="admission",
            alerts=("latency_p95",),
            plan="redirects streams to other split nodes",
            outcome="the latency is within its limit",
        ),
        ScenarioKind(
            Scenario.Kind.OVERLOAD, "Overload",
            "All nodes together receive more records than they can process.",
            planner="shedding",
            alerts=("node_load", "latency_p95"),
            plan="enables a shedding plan, which drops the records that cost the least quality",
            outcome="load and latency are within their limits, and a part of the input is dropped",
        ),
        ScenarioKind(
            Scenario.Kind.RUSH_HOUR, "Rush hour",
            "All streams have three times as many records.",
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
