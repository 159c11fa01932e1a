"""What the database wants of the agent, and what the agent tells it."""

from collections.abc import Mapping

from django.db import transaction

from controlplane.models import Cluster
from controlplane.services.events import announce, event
from workers.agent.driver import DriverSpec
from workers.agent.keeper import Report


def wanted_drivers() -> dict[str, DriverSpec | None]:
    """Return per cluster the driver it should have, None where it should have none."""
    return {cluster.slug: _spec(cluster) for cluster in Cluster.objects.all()}


def write_reports(reports: Mapping[str, Report]) -> None:
    """Store states that changed and tell the browsers of them."""
    for slug, report in reports.items():
        _write(slug, report)


@transaction.atomic
def _write(slug: str, report: Report) -> None:
    row = Cluster.objects.filter(slug=slug)
    told = {"state": report.state, "state_detail": report.detail}
    if row.exclude(**told).update(**told):
        text = f"{report.state}: {report.detail}" if report.detail else report.state
        announce(row.values_list("pk", flat=True).get(), event("state", text, state=report.state))


def _spec(cluster: Cluster) -> DriverSpec | None:
    return spec_of(cluster) if cluster.desired == Cluster.Desired.RUNNING else None


def spec_of(cluster: Cluster) -> DriverSpec:
    """Return what the driver of a cluster is started with."""
    return DriverSpec(
        cluster.slug,
        cluster.slots,
        cluster.splits,
        cluster.trigger_ms,
        cluster.master,
        cluster.log_url,
    )
