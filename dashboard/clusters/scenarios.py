"""The start and the end of scenarios from the page of a demo cluster."""

from typing import Any

from django.utils import timezone

from controlplane.alerts.states import title_of
from controlplane.clusters import scenarios
from controlplane.clusters.scenarios import DEFAULT_MINUTES, KINDS, ScenarioKind
from controlplane.models import Cluster
from dashboard.dialog_forms import cluster_dialog
from dashboard.forms import read, whole, whole_number
from dashboard.guards import PageRequest
from dashboard.responses import cluster_change


def scenario_form(cluster: Cluster, **parts: Any) -> dict[str, Any]:
    """Return the context of the form: kinds of scenarios, and nodes that take work."""
    del parts
    return {
        "scenario_kinds": [(kind, _alerts_of(kind)) for kind in scenarios.kinds_of(cluster)],
        "scenario_minutes": DEFAULT_MINUTES,
        "scenario_nodes": cluster.nodes.filter(active=True, index__lt=cluster.slots),
    }


def open_rows(cluster: Cluster) -> dict[str, Any]:
    """Return the context of the scenarios in effect, with their kinds."""
    rows = scenarios.open_scenarios(cluster, timezone.now())
    return {"scenarios": [(row, KINDS[row.kind], _alerts_of(KINDS[row.kind])) for row in rows]}


def _alerts_of(kind: ScenarioKind) -> str:
    return " or ".join(title_of(subject) for subject in kind.alerts)


@cluster_dialog("cluster", form="_cluster_scenario_form.html", field="kind", context=scenario_form)
def start(request: PageRequest, cluster: Cluster) -> str:
    """Start a scenario."""
    values = request.POST
    row = scenarios.start_scenario(
        request.actor,
        cluster,
        values.get("kind", ""),
        minutes=read(values, minutes=whole)["minutes"] if "minutes" in values else DEFAULT_MINUTES,
        node=whole_number(values.get("node", "")),
    )
    return f"{row.get_kind_display()}: until {row.ends_at:%H:%M} UTC."


@cluster_change("cluster")
def end(request: PageRequest, cluster: Cluster, pk: int) -> str:
    """End a scenario."""
    row = scenarios.end_scenario(request.actor, scenarios.scenario_by_id(cluster, pk))
    note = f" {row.note}." if row.note else ""
    return f"{row.get_kind_display()} has ended.{note}"
