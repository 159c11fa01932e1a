"""The page of a query: why it is on its nodes, what it shares, its state in one sentence."""

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.models import Cluster, RoutingVersion, Task
from controlplane.proposals import requests
from tests.support.cluster import placed

pytestmark = pytest.mark.nightly("pages")


def test_the_page_names_what_put_it_on_its_node(
    operating: Client, operator: Actor, sf: Cluster
) -> None:
    query = sf.queries.get(name="a")
    url = reverse("query", args=["sf", query.pk])
    page = operating.get(url)
    assert page.status_code == 200
    task = Task.objects.get(query=query)
    ((_, placement),) = page.context["placements"]
    assert (placement.node, placement.version) == (task.node.index, task.since_version)
    assert (placement.proposal, placement.actor) == (None, "")
    assert 'data-explain="query:a"' in page.content.decode()
    assert "style=" not in page.content.decode()
    proposal = requests.request(operator, sf, "mms", {"nu": 1.0})
    RoutingVersion.objects.filter(cluster=sf, version=task.since_version).update(proposal=proposal)
    page = operating.get(url)
    assert page.context["placements"][0][1].proposal == proposal.pk
    assert reverse("proposal", args=["sf", proposal.pk]) in page.content.decode()
    live = operating.get(reverse("query-live", args=["sf", query.pk]), headers={"HX-Request": "1"})
    assert live.status_code == 200


def test_queries_with_the_same_computation_on_a_node_share_it(
    operating: Client, operator: Actor, sf: Cluster
) -> None:
    twins = placed(operator, sf, {"twin-1": ["s3"], "twin-2": ["s3"]})
    hosts = {Task.objects.get(query=query).node_id for query in twins}
    page = operating.get(reverse("query", args=["sf", twins[0].pk]))
    report = page.context["report"]
    names = [row.name for row in report.shared]
    assert names == (["twin-2"] if len(hosts) == 1 else [])
    assert report.shared_count == len(names)


def test_late_records_are_shown_where_there_are_some(operating: Client, sf: Cluster) -> None:
    query = sf.queries.get(name="a")
    for name in ("query", "query-live"):
        url = reverse(name, args=["sf", query.pk])
        sf.queries.update(late_records=0, late_at=None)
        assert "late record" not in operating.get(url).content.decode()
        sf.queries.update(late_records=1, late_at=timezone.now() - timedelta(minutes=5))
        page = operating.get(url).content.decode()
        assert "1 late record<" in page
        assert "5 min ago" in page
