"""Bulk actions of the list of queries: end, undo, cancel."""

import re

import pytest
from django.test import Client

from controlplane.access.roles import Actor
from controlplane.models import BulkAction, Cluster, Proposal, Query
from controlplane.topology import placement, queries
from tests.dashboard.conftest import browser_of

pytestmark = pytest.mark.nightly("pages")


@pytest.fixture
def client(operator: Actor, sf: Cluster) -> Client:
    return browser_of(operator)


def test_selected_queries_end_and_are_restored(client: Client, sf: Cluster) -> None:
    sent = {"scope": "selected", "names": ["a", "b"], "filter": "state:live", "confirmed": "3"}
    answer = client.post("/clusters/sf/queries/end/", sent)
    action = BulkAction.objects.get()
    assert answer["Location"].endswith(f"?filter=state%3Alive&action={action.pk}")
    content = client.get(answer["Location"]).content.decode()
    assert f"/clusters/sf/bulk-actions/{action.pk}/restore/" in content
    early = client.post(f"/clusters/sf/bulk-actions/{action.pk}/restore/", follow=True)
    assert "still ending" in early.content.decode()
    placement.place_pending(sf.pk)
    undone = client.post(f"/clusters/sf/bulk-actions/{action.pk}/restore/", follow=True)
    assert "2 queries submitted again" in undone.content.decode()
    assert sorted(Query.objects.filter(state="pending").values_list("name", flat=True)) == [
        "a",
        "b",
    ]


def test_all_queries_of_the_filter_end(client: Client, sf: Cluster) -> None:
    sent = {"scope": "filter", "filter": "stream:s0", "confirmed": "2", "names": ["c"]}
    client.post("/clusters/sf/queries/end/", sent)
    assert sorted(Query.objects.filter(state="ending").values_list("name", flat=True)) == ["a", "b"]
    refused = client.post("/clusters/sf/queries/end/", sent | {"filter": "", "confirmed": "0"})
    assert Query.objects.get(name="c").state == "running"
    assert refused.status_code == 302


def test_a_running_action_has_progress_and_is_cancelled(
    client: Client, sf: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "MAX_BULK", 1)
    sent = {"scope": "filter", "filter": "", "confirmed": "3"}
    answer = client.post("/clusters/sf/queries/end/", sent)
    action = BulkAction.objects.get()
    toast = client.get(f"/clusters/sf/bulk-actions/{action.pk}/").content.decode()
    assert "0 of 3 queries end" in toast
    assert 'hx-trigger="weir:tick' in toast
    assert "bulk-cancel" not in toast
    assert f"/clusters/sf/bulk-actions/{action.pk}/cancel/" in toast
    client.post(f"/clusters/sf/bulk-actions/{action.pk}/cancel/")
    content = client.get(answer["Location"]).content.decode()
    assert "Cancelled: 0 queries of 3 ended." in content
    assert set(Query.objects.values_list("state", flat=True)) == {"running"}


def test_lately_ended_queries_can_be_selected_and_restored(client: Client, sf: Cluster) -> None:
    client.post("/clusters/sf/queries/end/", {"names": ["a"]})
    placement.place_pending(sf.pk)
    content = client.get("/clusters/sf/queries/?filter=state:ended").content.decode()
    assert re.findall(r'name="names" value="(\w+)"', content) == ["a"]
    client.post("/clusters/sf/queries/restore/", {"names": ["a"], "filter": ""})
    assert Query.objects.filter(name="a", state="pending", incarnation=1).exists()


@pytest.mark.parametrize("number", ["x", "1" * 13])
def test_a_wrong_number_of_an_action_is_refused(client: Client, number: str) -> None:
    assert client.get(f"/clusters/sf/queries/?action={number}").status_code == 422


@pytest.mark.nightly("pages", by_day=True)
def test_selected_queries_become_a_proposal_of_moves(client: Client, sf: Cluster) -> None:
    content = client.get("/clusters/sf/queries/").content.decode()
    assert 'popovertarget="move-many"' in content
    assert content.count("<option value=") >= sf.nodes.count()
    sent = {"names": ["a", "b"], "node": "2", "move_reason": "node 2 is idle", "filter": ""}
    answer = client.post("/clusters/sf/queries/move/", sent)
    proposal = Proposal.objects.get()
    assert answer["Location"] == f"/clusters/sf/proposals/{proposal.pk}/"
    assert (proposal.planner, proposal.parameters["node"]) == ("manual", 2)
    page = client.get(answer["Location"])
    assert ("Queries", 2) in page.context["parameters"]
    assert "Move chosen queries" in page.content.decode()


@pytest.mark.nightly("pages", by_day=True)
def test_moves_that_are_impossible_lead_back_to_the_list(client: Client, sf: Cluster) -> None:
    sent = {"names": ["a"], "node": "99", "filter": "state:live"}
    answer = client.post("/clusters/sf/queries/move/", sent, follow=True)
    assert answer.redirect_chain[0][0].endswith("/queries/?filter=state%3Alive")
    assert "no active node 99" in answer.content.decode()
    assert not Proposal.objects.exists()
