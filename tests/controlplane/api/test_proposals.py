"""Proposals and executions over HTTP: what may be said, by whom, and what came of it."""

import json
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from controlplane.access.roles import Actor
from controlplane.models import Cluster, Node, Proposal
from controlplane.planning.adapters import adapters
from controlplane.plans.proposal_states import SAID, Verb
from controlplane.policies.gate import GateCode, NextStep
from controlplane.proposals import computation, requests
from controlplane.proposals.executions import progression
from controlplane.proposals.review import Review
from tests.controlplane.api.callers import scripted
from tests.support.execution import (
    carried_out,
    moves_of,
    prepared_plan,
    prepared_scattered,
    step_through,
)
from tests.support.policies import set_policy

pytestmark = pytest.mark.django_db(transaction=True)
PROPOSALS = "/api/v1/clusters/sf/proposals"


@pytest.fixture
def cluster(operator: Actor, sf: Cluster) -> Cluster:
    """Twelve scattered queries, and steps of two moves."""
    set_policy(sf, cluster_moves=2)
    return prepared_scattered(operator, sf)


@pytest.fixture
def proposal(operator: Actor, cluster: Cluster) -> Proposal:
    return prepared_plan(operator, cluster)


@pytest.fixture
def approving(approver: Actor) -> Client:
    return scripted(approver)


@pytest.fixture
def operating(operator: Actor) -> Client:
    return scripted(operator)


def tell(client: Client, proposal: Proposal, verb: str, **body: str) -> Any:
    path = f"{PROPOSALS}/{proposal.pk}/{verb}"
    answer = client.post(path, json.dumps(body), content_type="application/json")
    proposal.refresh_from_db()
    return answer


def body_of(verb: Verb, proposal: Proposal) -> dict[str, str]:
    """Return the fields that the body of a verb has; another one would be refused."""
    body = {"seal": proposal.seal} if verb.seal else {}
    return body | ({"reason": "why"} if verb.reason else {})


def get(client: Client, proposal: Proposal, what: str = "") -> Any:
    return client.get(f"{PROPOSALS}/{proposal.pk}{what}").json()


def started(client: Client, proposal: Proposal) -> Proposal:
    assert tell(client, proposal, "approve", seal=proposal.seal).status_code == 200
    progression.advance(proposal.pk)
    proposal.refresh_from_db()
    return proposal


def test_a_life_by_api(approving: Client, operating: Client, proposal: Proposal) -> None:
    """Every verb that people have, in an order in which each is allowed."""
    seal = proposal.seal
    lived = [
        (approving, "approve", {"seal": seal}, "approved"),
        (approving, "withdraw", {"reason": "not yet"}, "ready"),
        (approving, "approve", {"seal": seal, "reason": "now"}, "approved"),
        (operating, "begin", {"seal": seal}, "executing"),
        (operating, "pause", {"reason": "a call"}, "paused"),
        (operating, "resume", {}, "executing"),
        (operating, "finish-step", {"reason": "lunch"}, "executing"),
        (operating, "stop", {"reason": "enough"}, "stopped"),
        (operating, "roll-back", {"seal": seal, "reason": "worse"}, "rolling back"),
    ]
    for client, verb, body, state in lived:
        answer = tell(client, proposal, verb, **body)
        assert (answer.status_code, answer.json()["state"]) == (200, state), verb
        if verb == "begin":
            progression.advance(proposal.pk)
    step_through(proposal)
    carried_out(proposal)
    assert proposal.state == "rolled back"
    said = {verb for _, verb, _, _ in lived} | {"cancel", "reject"}
    assert said == {verb.path for verb in SAID}


def test_the_other_ends_of_a_life(
    approving: Client, operating: Client, operator: Actor, proposal: Proposal
) -> None:
    assert tell(approving, proposal, "reject", reason="not today").json()["state"] == "rejected"
    computing = requests.request(operator, proposal.cluster)
    path = f"{PROPOSALS}/{computing.pk}/cancel"
    cancelled = operating.post(path, "", content_type="application/json")
    assert cancelled.json()["state"] == "rejected", "nothing has to be sent along"
    anew = tell(operating, proposal, "request-again")
    assert (anew.status_code, anew.json()["base"]) == (202, proposal.pk)


@pytest.mark.parametrize(
    "verb", [verb for verb in SAID if "ready" not in verb.sources], ids=lambda verb: verb.path
)
def test_what_the_state_does_not_allow_is_a_conflict(
    approving: Client, proposal: Proposal, verb: Verb
) -> None:
    answer = tell(approving, proposal, verb.path, **body_of(verb, proposal))
    expected = "nothing_applied" if verb.name == "roll back" else "not_allowed"
    assert (answer.status_code, answer.json()["code"]) == (409, expected)
    assert proposal.state == "ready"


@pytest.mark.parametrize("verb", [verb for verb in SAID if verb.reason], ids=lambda verb: verb.path)
def test_a_reason_that_is_asked_for_must_be_given(
    approving: Client, proposal: Proposal, verb: Verb
) -> None:
    """Left out it is malformed, blank it is refused, or the state is told first."""
    body = body_of(verb, proposal)
    del body["reason"]
    answer = tell(approving, proposal, verb.path, **body)
    assert answer.status_code == 422
    assert list(answer.json()["fields"]) == ["reason"]


def test_the_seal_must_name_these_moves(approving: Client, proposal: Proposal) -> None:
    wrong = tell(approving, proposal, "approve", seal="0" * 64)
    assert (wrong.status_code, wrong.json()["code"]) == (409, "wrong_seal")
    assert tell(approving, proposal, "approve").status_code == 422
    started(approving, proposal)
    wrong = tell(approving, proposal, "roll-back", seal="0" * 64, reason="worse")
    assert (wrong.status_code, wrong.json()["code"]) == (409, "wrong_seal")


def test_what_is_allowed_depends_on_the_state_and_on_who_asks(
    approving: Client, operating: Client, viewer: Actor, proposal: Proposal
) -> None:
    found = {verb["verb"]: verb for verb in get(approving, proposal)["allowed"]}
    assert set(found) == {"approve", "reject"}
    assert (found["approve"]["seal"], found["reject"]["reason"]) == (True, True)
    assert get(operating, proposal)["allowed"] == []
    asked = get(operating, proposal, "/allowed")
    assert (asked["state"], asked["verbs"], asked["request_again"]) == ("ready", [], True)
    assert (asked["auto_approval"]["allowed"], asked["auto_approval"]["code"]) == (False, "kind")
    assert get(scripted(viewer), proposal, "/allowed")["request_again"] is False
    started(approving, proposal)
    assert get(operating, proposal, "/allowed")["auto_approval"] is None
    verbs = [verb["verb"] for verb in get(operating, proposal, "/allowed")["verbs"]]
    assert verbs == ["pause", "finish-step", "stop", "roll-back"]


def test_actions_come_in_pages_with_their_status(approving: Client, proposal: Proposal) -> None:
    started(approving, proposal)
    step_through(proposal)
    page = get(approving, proposal, "/actions?limit=2")
    assert (page["total"], bool(page["next"])) == (len(proposal.actions), True)
    first, second = page["actions"]
    assert (first["status"], first["step"], second["status"]) == ("applied", 1, "applying")
    assert first["imbalance"] == proposal.imbalance_after[0]
    assert first["before"] == f"node {moves_of(proposal)[0].source}"
    assert (first["kind"], first["action"]) == ("move_tasks", proposal.plan[0].action_json())
    assert "actions" not in get(approving, proposal)


def test_an_execution_tells_its_steps(approving: Client, proposal: Proposal) -> None:
    """Bytes, pause, balance, cap and why, time to go, and the price of going back."""
    assert approving.get(f"{PROPOSALS}/{proposal.pk}/execution").status_code == 404
    assert approving.get("/api/v1/clusters/sf/execution").json() is None
    started(approving, proposal)
    step_through(proposal)
    found = get(approving, proposal, "/execution")
    assert (found["actions"], found["total_actions"], found["step"]) == (
        1,
        len(proposal.actions),
        2,
    )
    assert found["eta_s"] > 0
    assert found["rollback_cost"]["actions"] == 3
    under, done = found["step_rows"]
    assert (under["number"], under["state"], under["acknowledged_at"]) == (2, "published", None)
    assert (done["bytes"], done["pause_ms"], done["waited"], done["p95_ms"]) == (1000, 700, 2, 300)
    assert done["cap_reason"].startswith("begins with")
    running = approving.get("/api/v1/clusters/sf/execution").json()
    assert (running["proposal"], running["state"]) == (proposal.pk, "executing")


def test_drift_is_told_before_and_after_it_is_too_much(
    approving: Client, operator: Actor, proposal: Proposal
) -> None:
    assert get(approving, proposal, "/drift")["stale"] is False
    Node.objects.filter(index=0).update(capacity=100)
    found = get(approving, proposal, "/drift")
    assert (found["stale"], found["capacities"]) == (True, [0])
    refused = tell(approving, proposal, "approve", seal=proposal.seal)
    assert (refused.status_code, refused.json()["code"]) == (409, "stale")
    # The approval reviews the plan: only from then on are the lost gain and the start known.
    drift = refused.json()["data"]
    assert drift == found | {"gain_lost": 0.0, "drifting_since": drift["drifting_since"]}
    assert get(approving, proposal)["drift"] == drift
    review = Review(1, "", 0.0, 3, {}, {}, {}, gain_lost=0.9, queries=3)
    Proposal.objects.filter(pk=proposal.pk).update(state="ready", review=review.to_json())
    lock = get(approving, proposal)["lock"]
    assert (lock["code"], lock["gain_lost"], lock["applicable"]) == ("gain_lost", 0.9, 3)
    computing = requests.request(operator, proposal.cluster)
    assert approving.get(f"{PROPOSALS}/{computing.pk}/drift").status_code == 409


def test_kinds_of_planners_are_told_with_their_parameters(
    operating: Client, cluster: Cluster, settings: Settings
) -> None:
    """What is told can be asked for."""
    settings.MAX_REQUESTS_PER_USER = 100
    answer = operating.get("/api/v1/clusters/sf/planners").json()
    assert [planner["name"] for planner in answer] == list(adapters())
    asked = 0
    for planner in answer:
        names = {measure["name"] for measure in planner["measures"]}
        assert set(planner["improves"]) <= names
        for algorithm in planner["algorithms"]:
            # A ladder has no parameters: the policy has its settings.
            for parameter in algorithm["parameters"][:1]:
                assert parameter["name"] in ("goal", "nu", "tau", "horizon", "seed")
                assert parameter["type"] in ("float", "int", "str")
            body = {"planner": planner["name"], "algorithm": algorithm["name"]}
            answer = operating.post(PROPOSALS, json.dumps(body), content_type="application/json")
            if planner["missing"] and answer.status_code == 422:
                assert answer.json()["code"] == planner["missing"]["code"]
                continue
            assert answer.status_code == 202, answer.content
            asked += 1
    assert Proposal.objects.count() == asked > 10


def test_a_list_reads_no_moves_and_costs_the_same_for_many(
    approving: Client, proposal: Proposal
) -> None:
    approving.get(PROPOSALS)
    with CaptureQueriesContext(connection) as few:
        row = approving.get(PROPOSALS).json()["proposals"][0]
    assert (row["action_count"], "actions" in row) == (len(proposal.actions), False)
    # Identical requests would be merged.
    same = {"cluster": proposal.cluster, "requested_at": timezone.now(), "state": "computing"}
    Proposal.objects.bulk_create(Proposal(**same) for _ in range(20))
    with CaptureQueriesContext(connection) as many:
        assert len(approving.get(PROPOSALS).json()["proposals"]) == 21
    assert len(many) == len(few)
    listed = [one["sql"] for one in many if 'FROM "controlplane_proposal"' in one["sql"]]
    assert listed
    assert not [sql for sql in listed if '."moves"' in sql or '."path"' in sql]


def test_a_plan_without_a_gain_is_not_offered(operating: Client, cluster: Cluster) -> None:
    """It ends with the best reachable values, what would help, and no verb to approve it."""
    set_policy(cluster, watch_imbalance=0.0)
    body = operating.post(PROPOSALS, {"goal": "even"}, "application/json").json()
    computation.compute(body["id"])
    found = operating.get(f"{PROPOSALS}/{body['id']}").json()
    assert (found["state"], found["aims"], found["allowed"]) == (
        "no better plan", ["imbalance"], [],
    )  # fmt: skip
    judgement = found["judgement"]
    assert judgement["code"] in set(GateCode)
    assert judgement["next_step"] in set(NextStep)
    change = judgement["changes"][0]
    assert (change["before"], change["after"]) == (
        found["before"][change["measure"]], found["after"][change["measure"]],
    )  # fmt: skip
    refused = operating.post(
        f"{PROPOSALS}/{body['id']}/approve", {"seal": found["seal"]}, "application/json"
    )
    assert refused.status_code in (403, 409)
    rows = operating.get(PROPOSALS, {"filter": 'state:"no better plan"'}).json()["proposals"]
    assert [row["id"] for row in rows] == [body["id"]]
