"""Comparing, dropping moves and reading the ledger by script."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.models import Cluster, LedgerEntry
from controlplane.proposals import computation, requests
from tests.support.execution import moved_names, prepared_scattered, ready

pytestmark = pytest.mark.django_db(transaction=True)
BASE = "/api/v1/clusters/sf"


@pytest.fixture
def cluster(operator: Actor, sf: Cluster) -> Cluster:
    """Twelve scattered queries."""
    return prepared_scattered(operator, sf)


@pytest.fixture
def operating(operator: Actor) -> Client:
    """The operator's session."""
    return browser_of(operator)


def browser_of(actor: Actor) -> Client:
    assert isinstance(actor.user, User)
    client = Client()
    client.force_login(actor.user)
    return client


def post(client: Client, path: str, body: Any = None) -> Any:
    return client.post(f"{BASE}{path}", json.dumps(body or {}), content_type="application/json")


def test_a_comparison_is_asked_for_watched_and_read(operating: Client, cluster: Cluster) -> None:
    body = {"asked": [{}, {"algorithm": "off_rand"}], "budgets": [{"moves": 3}, {}]}
    answer = post(operating, "/comparisons", body)
    assert answer.status_code == 202
    told = answer.json()
    assert (told["computing"], len(told["candidates"])) == (4, 4)
    assert told["candidates"][0]["bytes"] is None
    for one in told["candidates"]:
        computation.compute(one["proposal"])
    told = operating.get(f"{BASE}/comparisons/{told['id']}").json()
    assert told["computing"] == 0
    assert told["candidates"][0]["budget"] == {"moves": 3}
    assert told["candidates"][0]["moves"] <= 3
    assert any(one["pareto"] for one in told["candidates"])
    listed = operating.get(f"{BASE}/comparisons").json()
    assert [(one["id"], one["total"]) for one in listed["comparisons"]] == [(told["id"], 4)]


def test_a_proposal_under_a_budget_by_its_parameters(operating: Client, cluster: Cluster) -> None:
    asked = {"algorithm": "mms", "parameters": {"budget": {"moves": 2}}}
    made = post(operating, "/proposals", asked).json()
    computation.compute(made["id"])
    told = operating.get(f"{BASE}/proposals/{made['id']}").json()
    assert told["parameters"]["budget"] == {"moves": 2}
    assert told["predicted"]["moves"] <= 2
    assert told["predicted"]["left_out"] == told["predicted"]["budget"]["left_out"] > 0
    refused = post(operating, "/proposals", {"parameters": {"budget": {"euros": 2}}})
    assert refused.status_code == 422
    assert list(refused.json()["fields"]) == ["budget"]


def test_effects_come_in_pages_and_moves_are_dropped(
    operating: Client, operator: Actor, cluster: Cluster
) -> None:
    proposal = ready(operator, cluster)
    total = len(proposal.actions)
    first = operating.get(f"{BASE}/proposals/{proposal.pk}/effects?limit=2").json()
    assert first["total"] == total
    cursor = first["next"]
    told = operating.get(f"{BASE}/proposals/{proposal.pk}/effects?limit=2&cursor={cursor}").json()
    assert [one["place"] for one in told["effects"]] == [2, 3]
    assert told["effects"][0]["object"] == moved_names(proposal)[2]
    answer = post(operating, f"/proposals/{proposal.pk}/without", {"places": [2, 3]})
    assert answer.status_code == 201
    derived = answer.json()
    assert (derived["origin"], derived["base"]) == ("derived", proposal.pk)
    assert derived["action_count"] == total - 2
    assert derived["seal"] != proposal.seal
    refused = post(operating, f"/proposals/{proposal.pk}/without", {"places": [total]})
    assert refused.status_code == 422


def test_without_a_plan_there_are_no_effects(
    operating: Client, operator: Actor, cluster: Cluster
) -> None:
    computing = requests.request(operator, cluster)
    answer = operating.get(f"{BASE}/proposals/{computing.pk}/effects")
    assert (answer.status_code, answer.json()["code"]) == (409, "no_plan")


def test_the_ledger_and_the_calibration_are_read(
    operating: Client, operator: Actor, cluster: Cluster
) -> None:
    proposal = ready(operator, cluster)
    LedgerEntry.objects.create(
        proposal=proposal, cluster=cluster, planner="placement", algorithm="mms",
        approved={"imbalance": 1.0}, expected={"imbalance": 1.0}, measured={"imbalance": 2.0},
        at=timezone.now(), applied=3, samples=30,
    )  # fmt: skip
    told = operating.get(f"{BASE}/ledger").json()
    assert told["entries"][0]["proposal"] == proposal.pk
    assert told["entries"][0]["measured"] == {"imbalance": 2.0}
    told = operating.get(f"{BASE}/ledger/calibration").json()
    assert told["records"][0] == {
        "planner": "placement", "runs": 1, "median_error": 1.0, "cost_error": None
    }  # fmt: skip
    assert told["figures"] == [
        {"planner": "placement", "algorithm": "mms", "figure": "imbalance", "runs": 1, "ratio": 2.0,
         "error": 1.0},
    ]  # fmt: skip
