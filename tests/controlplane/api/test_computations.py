"""Estimates, limits and queues of computations for scripts."""

import json
from typing import Any

import pytest
from django.test import Client

from controlplane.access.roles import Actor
from controlplane.models import Cluster, LabRun
from tests.controlplane.api.callers import scripted
from tests.support.cluster import placed

pytestmark = pytest.mark.django_db(transaction=True)
LAB = "/api/v1/lab"
SF = "/api/v1/clusters/sf"


@pytest.fixture
def script(operator: Actor, sf: Cluster) -> Client:
    """A client with an operator's token, on a cluster with queries."""
    placed(operator, sf, {f"q{number}": ["s0"] for number in range(4)})
    return scripted(operator)


def post(client: Client, path: str, body: Any) -> Any:
    return client.post(path, json.dumps(body), content_type="application/json")


def test_the_request_that_took_a_machine_is_refused(script: Client) -> None:
    """A number beyond its bound by the bound; a combination within its bounds by the estimate."""
    body = {"planner": "placement", "experiment": "fig4a", "parameters": {"queries": 10**9}}
    refused = post(script, f"{LAB}/runs", body)
    assert (refused.status_code, list(refused.json()["fields"])) == (422, ["queries"])
    body["parameters"] = {"queries": 10_000_000, "sources_per_query": 50}
    for path in ("runs", "estimate"):
        refused = post(script, f"{LAB}/{path}", body).json()
        assert refused["code"] == "too_expensive"
        assert refused["data"]["estimate"]["bytes"] > refused["data"]["limit"]["bytes"]
        assert "queries" in refused["data"]["reduce"]
    assert not LabRun.objects.exists()


def test_estimates_are_within_their_limits(script: Client) -> None:
    body: dict[str, Any] = {"planner": "placement", "experiment": "fig4a"}
    plan: dict[str, Any] = {"algorithm": "mms"}
    for path, request in ((f"{LAB}/estimate", body), (f"{SF}/proposals/estimate", plan)):
        need = post(script, path, request).json()
        assert 0 < need["bytes"] < need["limit_bytes"]
        assert 0 < need["seconds"] < need["limit_seconds"]


def test_queues_have_positions(script: Client) -> None:
    """Of proposals and of runs."""
    ids = [
        post(script, f"{SF}/proposals", {"algorithm": "mms", "parameters": {"nu": nu}}).json()["id"]
        for nu in (0.1, 0.2, 0.2)
    ]
    assert ids[1] == ids[2]
    queue = script.get(f"{SF}/queue").json()
    assert [(entry["id"], entry["position"]) for entry in queue] == [(ids[0], 1), (ids[1], 2)]
    run = post(script, f"{LAB}/runs", {"planner": "placement", "experiment": "fig4a"}).json()
    (place,) = script.get(f"{LAB}/queue").json()
    assert (place["id"], place["position"]) == (run["id"], 1)


def test_too_many_requests_are_429(script: Client, settings: Any) -> None:
    """Forty requests in seven seconds leave four computations."""
    answers = [
        post(script, f"{SF}/proposals", {"algorithm": "mms", "parameters": {"nu": number / 100}})
        for number in range(40)
    ]
    assert [answer.status_code for answer in answers] == [202] * 4 + [429] * 36
    assert answers[-1].json()["code"] == "too_many_requests"
    assert int(answers[-1]["Retry-After"]) > 0
    settings.MAX_LAB_RUNS_PER_USER = 1
    body = {"planner": "placement", "experiment": "fig4a", "parameters": {"seeds": 1}}
    assert post(script, f"{LAB}/runs", body).status_code == 202
    assert post(script, f"{LAB}/runs", body).status_code == 202
    refused = post(script, f"{LAB}/runs", body | {"values": [2.0]})
    assert (refused.status_code, refused.json()["code"]) == (429, "too_many_runs")


def test_a_range_of_samples_has_a_bound(script: Client) -> None:
    """A month of samples would be hundreds of megabytes."""
    query = "start=2020-01-01T00:00:00Z&resolution"
    assert script.get(f"{SF}/samples?{query}=60").status_code == 422
    assert script.get(f"{SF}/samples?{query}=10").status_code == 200
