"""The panel and page of explanations, and the page of a node."""

import json
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.models import Cluster, Decision, Proposal, RoutingVersion, Stream, Task
from tests.dashboard.conftest import browser_of
from tests.support.cluster import placed, small_cluster, stream_id
from tests.support.explaining import record_past, steps

HTMX = {"HX-Request": "true"}


@pytest.fixture
def risen(operator: Actor) -> tuple[Cluster, int]:
    """A cluster of four nodes, and the index of the one that a stream overloads."""
    cluster = small_cluster(operator)
    (query,) = placed(operator, cluster, {"busy": ["s0"]})
    node = Task.objects.get(query=query).node.index
    loads = [steps(100, 600 if index == node else 100, 8) for index in range(4)]
    now = timezone.now()
    RoutingVersion.objects.filter(cluster=cluster).update(created_at=now - timedelta(hours=2))
    record_past(cluster, now, loads, {stream_id(cluster, "s0"): steps(100, 600, 8)})
    return cluster, node


def test_the_panel_names_cause_streams_changes_and_plans(
    operating: Client, risen: tuple[Cluster, int]
) -> None:
    cluster, node = risen
    url = f"{reverse('explain', args=['sf'])}?subject=node:{node}"
    panel = operating.get(url, headers=HTMX)
    text = panel.content.decode()
    assert "<html" not in text
    assert f'data-subject="node:{node}"' in text
    assert reverse("stream", args=["sf", stream_id(cluster, "s0")]) in text
    assert reverse("node", args=["sf", node]) in text
    row = panel.context["row"]
    assert (row["value"].cause.stream, row["later"]) == (stream_id(cluster, "s0"), "")
    assert row["earlier"].startswith(f"node:{node}@")
    (ranked,) = row["value"].ranked
    assert (ranked.mark, ranked.relation_text) == ("bad", "when the limit was exceeded")
    assert ranked.size_text.endswith("records/s")
    assert f'<span class="num">{ranked.share_text}</span>' in text
    assert 'hx-trigger="weir:present' in text, "it is live"
    assert "style=" not in text
    page = operating.get(url)
    assert "explain-page" in page.content.decode()
    earlier = f"{reverse('explain', args=['sf'])}?subject={row['earlier']}"
    past = operating.get(earlier, headers=HTMX)
    assert "hx-trigger" not in past.content.decode()
    for wrong in ("subject=x", f"subject={row['earlier']}&colour=red"):
        refused = operating.get(f"{reverse('explain', args=['sf'])}?{wrong}")
        assert refused.status_code == 422
        assert 'id="menu"' in refused.content.decode()
    assert "of this node" not in text, "its title is the node"
    measure = f"{reverse('explain', args=['sf'])}?subject=measure:imbalance"
    assert f"<h3>node {node} <" in operating.get(measure, headers=HTMX).content.decode()


def test_a_click_requests_the_plan(
    operating: Client, viewer: Actor, risen: tuple[Cluster, int]
) -> None:
    _, node = risen
    url = reverse("explain-request", args=["sf"])
    body = {"subject": f"node:{node}", "planner": "placement", "reason": "room_elsewhere"}
    answer = operating.post(url, body)
    proposal = Proposal.objects.get()
    assert answer["Location"] == reverse("proposal", args=["sf", proposal.pk])
    assert proposal.planner == "placement"
    refused = operating.post(url, body | {"planner": "none"})
    assert "explain=" in refused["Location"]
    assert browser_of(viewer).post(url, body).status_code in (302, 403)
    assert Proposal.objects.count() == 1


def test_the_page_of_a_node_has_tiles_tasks_and_charts(
    operating: Client, risen: tuple[Cluster, int]
) -> None:
    cluster, node = risen
    page = operating.get(reverse("node", args=["sf", node]))
    text = page.content.decode()
    assert page.status_code == 200
    tiles = {tile.name: tile for tile in page.context["tiles"]}
    assert (tiles["load"].number, tiles["load"].grade) == ("600", "bad")
    assert f'data-explain="node:{node}"' in text
    assert reverse("query", args=["sf", cluster.queries.get().pk]) in text
    assert "style=" not in text
    figures = json.loads(operating.get(reverse("node-charts", args=["sf", node])).content)[
        "figures"
    ]
    assert set(figures) == {"load", "backlog", "latency", "state"}
    assert max(value for value in figures["load"]["data"][0]["y"] if value) == 600
    assert operating.get(reverse("node-tasks-csv", args=["sf", node])).content.count(b"\n") == 2
    assert operating.get(reverse("node-live", args=["sf", node]), headers=HTMX).status_code == 200
    assert operating.get(reverse("node", args=["sf", 99])).status_code == 404


def test_lists_of_a_cluster_open_with_an_explanation(
    operating: Client, risen: tuple[Cluster, int]
) -> None:
    """They refuse other parameters that they do not have."""
    for name in ("streams", "queries", "proposals", "decisions"):
        url = reverse(name, args=["sf"])
        assert operating.get(f"{url}?explain=node:{risen[1]}").status_code == 200
        assert operating.get(f"{url}?explained=node:{risen[1]}").status_code == 422


def test_rates_and_decisions_open_their_explanation(
    operating: Client, risen: tuple[Cluster, int]
) -> None:
    cluster, now = risen[0], timezone.now()
    Stream.objects.update(rate=5.0)
    row = Decision.objects.create(
        cluster=cluster, loop="imbalance", code="within", text="within the limit", number=0.1,
        limit=0.2, first_at=now, last_at=now, count=1,
    )  # fmt: skip
    for name, subject in (("streams", "stream:s0"), ("decisions", f"decision:{row.pk}")):
        page = operating.get(reverse(name, args=["sf"])).content.decode()
        assert f'data-explain="{subject}"' in page
        url = f"{reverse('explain', args=['sf'])}?subject={subject}"
        assert operating.get(url, headers=HTMX).status_code == 200
        # As an open panel requests it again.
        assert operating.get(f"{url}&refresh=1", headers=HTMX).status_code == 200


def test_a_page_of_its_own_refreshes_itself(operating: Client, operator: Actor) -> None:
    url = f"/clusters/{small_cluster(operator).slug}/explain/?subject=node:0&refresh=1"
    panel, page = (
        operating.get(path, headers=HTMX).content.decode() for path in (url, f"{url}&page=1")
    )
    assert ('hx-target="#panel"' in panel, 'hx-target="#explain-page"' in panel) == (True, False)
    assert ('hx-target="#panel"' in page, 'hx-target="#explain-page"' in page) == (False, True)


def test_a_node_without_data_has_a_page(operating: Client, operator: Actor) -> None:
    small_cluster(operator)
    page = operating.get(reverse("node", args=["sf", 0]))
    assert page.status_code == 200
    assert page.context["tiles"][0].number == "no data"
