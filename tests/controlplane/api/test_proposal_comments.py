"""Comments over HTTP, reasons that are added later, and approvals that name their effect."""

import json
from typing import Any

import pytest
from django.test import Client

from controlplane.access.roles import Actor
from controlplane.models import AuditEntry, Cluster, Proposal
from tests.controlplane.api.callers import scripted
from tests.controlplane.api.test_proposals import PROPOSALS, started
from tests.support.cluster import placed
from tests.support.execution import prepared_plan, prepared_scattered

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def proposal(operator: Actor, sf: Cluster) -> Proposal:
    """A ready plan for scattered queries."""
    return prepared_plan(operator, prepared_scattered(operator, sf))


def post(client: Client, proposal: Proposal, what: str, **body: Any) -> Any:
    path = f"{PROPOSALS}/{proposal.pk}/{what}"
    return client.post(path, json.dumps(body), content_type="application/json")


def test_operators_comment_and_viewers_read(
    operator: Actor, viewer: Actor, proposal: Proposal
) -> None:
    operating, viewing = scripted(operator), scripted(viewer)
    assert post(viewing, proposal, "comments", text="no").status_code == 403
    assert post(operating, proposal, "comments", text=" ").status_code == 422
    assert post(operating, proposal, "comments", text="x" * 2001).status_code == 422
    assert post(operating, proposal, "comments", text="after the peak").status_code == 201
    rows = viewing.get(f"{PROPOSALS}/{proposal.pk}/comments").json()
    assert [(row["author"], row["text"]) for row in rows] == [("a-operator", "after the peak")]


def test_a_reason_is_added_after_a_pause(approver: Actor, proposal: Proposal) -> None:
    client = scripted(approver)
    started(client, proposal)
    assert post(client, proposal, "pause").json()["unexplained"] == "pause"
    assert post(client, proposal, "reason", reason="a call").status_code == 204
    again = post(client, proposal, "reason", reason="a call")
    assert (again.status_code, again.json()["code"]) == (409, "no_reason_needed")
    assert AuditEntry.objects.get(action="proposal.pause_reason").reason == "a call"


def test_an_approval_names_its_effect(approver: Actor, proposal: Proposal) -> None:
    client, count = scripted(approver), len(proposal.actions)
    refused = post(client, proposal, "approve", seal=proposal.seal, applicable=count + 1)
    assert (refused.status_code, refused.json()["code"]) == (409, "effect_changed")
    assert refused.json()["data"] == {"applicable": count, "named": count + 1}
    assert post(client, proposal, "approve", seal=proposal.seal, applicable=count).status_code < 300


def test_a_plan_is_requested_by_its_goal(operator: Actor, sf: Cluster) -> None:
    placed(operator, sf, {"q": ["s0"]})
    client = scripted(operator)
    answer = client.post(PROPOSALS, json.dumps({"goal": "traffic"}), "application/json")
    assert (answer.status_code, answer.json()["planner"]) == (202, "placement")
    for body in ({"goal": "magic"}, {"goal": "even", "planner": "placement"}):
        assert client.post(PROPOSALS, json.dumps(body), "application/json").status_code == 422
