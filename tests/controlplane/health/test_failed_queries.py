"""A query that the data plane cannot compute ends as failed, once, and says why."""

import pytest
from django.test import Client

from controlplane.access.roles import Actor
from controlplane.background import ingestion
from controlplane.health import failed_queries
from controlplane.models import AuditEntry, Cluster
from controlplane.topology import placement
from tests.controlplane.api.callers import get, scripted, user_of
from tests.support.cluster import actor, placed, replayed_table, telemetry

pytestmark = pytest.mark.django_db


def test_a_fault_in_the_telemetry_ends_its_query_as_failed(operator: Actor, sf: Cluster) -> None:
    """Every batch tells it until the query has left; other queries go on."""
    bad, good = placed(operator, sf, {"bad": ["s0"], "good": ["s0"]})
    fault = {"query": bad.pk, "run": bad.incarnation, "node": 0, "why": "f raised ValueError: no",
             "stage": "evaluate", "sample": '[{"level": 4}]'}  # fmt: skip
    ingestion.record(
        sf, [telemetry(at, 1_000 * at, faults=[fault | {"sample": ""}, fault]) for at in (1, 2)]
    )
    ingestion.record(sf, [telemetry(3, 3_000, faults=[fault])])
    placement.place_pending(sf.pk)
    for query in (bad, good):
        query.refresh_from_db()
    assert (bad.state, bad.detail) == ("failed", "f raised ValueError: no")
    assert bad.ended_at is not None
    assert bad.fault == {
        "why": bad.detail, "stage": "evaluate", "node": 0, "sample": [{"level": 4}]
    }  # fmt: skip
    assert good.state == "running"
    assert set(replayed_table(sf).queries) == {good.pk}
    (told,) = AuditEntry.objects.filter(action="query.fail")
    assert (told.actor, told.object, told.reason) == ("data plane", "bad", bad.detail)


def test_a_fault_of_an_earlier_run_is_no_fault_of_this_one(operator: Actor, sf: Cluster) -> None:
    (query,) = placed(operator, sf, {"q": ["s0"]})
    fault = {"query": query.pk, "run": query.incarnation + 1, "node": 0, "why": "no",
             "stage": "evaluate", "sample": ""}  # fmt: skip
    assert failed_queries.end_failed(sf, [telemetry(1, 1_000, faults=[fault])]) == 0
    assert failed_queries.end_failed(sf, [telemetry(1, 1_000)]) == 0


def test_the_fault_is_shown_by_api_and_page(operator: Actor, sf: Cluster) -> None:
    (query,) = placed(operator, sf, {"q": ["s0"]})
    fault = {"query": query.pk, "run": query.incarnation, "node": 1, "why": "KeyError: 'tank'",
             "stage": "window", "sample": '[{"tank": "<north>"}]'}  # fmt: skip
    failed_queries.end_failed(sf, [telemetry(1, 1_000, faults=[fault])])
    told = get(scripted(actor("viewer")), "/clusters/sf/queries/q").json()["fault"]
    assert (told["stage"], told["node"], told["sample"]) == ("window", 1, [{"tank": "<north>"}])
    client = Client()
    client.force_login(user_of(actor("viewer", "page-viewer")))
    page = client.get(f"/clusters/sf/queries/{query.pk}/").content.decode()
    assert "stage window on node 1" in " ".join(page.split())
    assert "tank: &lt;north&gt;" in page
