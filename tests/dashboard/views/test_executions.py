"""The page of a proposal while it is carried out, and what one may do on it at each moment."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.connections import redis_client
from controlplane.models import AuditEntry, Cluster, Execution, Grant, Node, Proposal, Step, Stream
from controlplane.plans.proposal_states import SAID
from controlplane.proposals import computation, staleness
from controlplane.proposals.executions import progression
from tests.dashboard.conftest import browser_of
from tests.dashboard.views.test_verbs import said
from tests.support import cluster as made
from tests.support.execution import (
    carried_out,
    moves_of,
    prepared_plan,
    prepared_scattered,
    step_through,
)
from tests.support.heartbeats import send_heartbeats
from tests.support.policies import set_policy
from tests.support.prepared import prepared

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def cluster(operator: Actor) -> Cluster:
    """Twelve scattered queries, and steps of two moves."""
    found = prepared("small", lambda: made.small_cluster(operator), operator.user.pk)
    set_policy(found, cluster_moves=2)
    return prepared_scattered(operator, found)


@pytest.fixture
def proposal(operator: Actor, cluster: Cluster) -> Proposal:
    """A proposal that waits for somebody to approve it."""
    return prepared_plan(operator, cluster)


def path_to(proposal: Proposal, verb: str = "") -> str:
    return f"/clusters/sf/proposals/{proposal.pk}/{verb}"


def page_of(client: Client, proposal: Proposal) -> str:
    return client.get(path_to(proposal)).content.decode()


def tell(client: Client, proposal: Proposal, verb: str, reason: str = "") -> str:
    """Post a form as the page has it; return what the next page says."""
    values = {"seal": proposal.seal, "reason": reason}
    told = said(client.post(path_to(proposal, f"{verb}/"), values))
    proposal.refresh_from_db()
    return told


def start(client: Client, proposal: Proposal) -> Proposal:
    tell(client, proposal, "approve")
    progression.advance(proposal.pk)
    proposal.refresh_from_db()
    assert proposal.state == "executing"
    return proposal


def offered(content: str) -> set[str]:
    """Return the verbs that a page has a form for."""
    return {verb.path for verb in SAID if f"/{verb.path}/" in content}


def test_every_verb_of_people_has_its_words() -> None:
    """Who adds a verb to the table is told to give it a button."""
    assert all(verb.label and verb.done for verb in SAID)


def test_the_cost_is_on_the_page_before_anybody_approves(
    approving: Client, proposal: Proposal
) -> None:
    content = page_of(approving, proposal)
    for word in ("State to move", "Rollback cost", "Peak imbalance during execution"):
        assert word in content
    assert offered(content) == {"approve", "reject"}
    assert "/request-again/" in content


def test_the_page_names_the_reasons_for_a_person(approving: Client, proposal: Proposal) -> None:
    assert 'data-code="kind"' in page_of(approving, proposal)
    set_policy(proposal.cluster, auto_kinds=[proposal.planner], auto_gain=0.0)
    assert 'data-code="allowed"' in page_of(approving, proposal)
    start(approving, proposal)
    content = page_of(approving, proposal)
    assert 'data-code="kind"' not in content
    assert 'data-code="allowed"' not in content


def test_a_verb_is_offered_where_state_and_role_allow_it(
    approving: Client, operating: Client, viewing: Client, proposal: Proposal
) -> None:
    assert offered(page_of(operating, proposal)) == set()
    tell(approving, proposal, "approve")
    assert offered(page_of(approving, proposal)) == {"withdraw"}
    progression.advance(proposal.pk)
    assert offered(page_of(operating, proposal)) == {"pause", "finish-step", "stop", "roll-back"}
    assert offered(page_of(viewing, proposal)) == set()


def test_what_needs_a_reason_takes_a_second_click_and_emergencies_none(
    approving: Client, proposal: Proposal
) -> None:
    start(approving, proposal)
    content = page_of(approving, proposal)
    for verb in ("roll-back", "finish-step"):
        dialog = content.split(f'id="say-{verb}"')[1].split("</form>")[0]
        assert f"/{verb}/" in dialog
        assert 'name="reason" maxlength="500" required' in dialog
        assert ('name="seal"' in dialog) == (verb == "roll-back")
    for verb in ("pause", "stop"):
        assert f'id="say-{verb}"' not in content
        assert f'id="do-{verb}"' in content


def test_it_is_paused_at_once_and_the_reason_added_later(
    approving: Client, operating: Client, viewing: Client, proposal: Proposal
) -> None:
    start(approving, proposal)
    assert "Enter a reason" in tell(operating, proposal, "finish-step")
    tell(operating, proposal, "pause")
    assert (proposal.state, proposal.unexplained) == ("paused", "pause")
    content = page_of(operating, proposal)
    assert "a-operator paused it" in content
    assert 'id="ask-reason"' in content
    assert 'id="ask-reason"' not in page_of(viewing, proposal)
    operating.post(path_to(proposal, "reason/"), {"reason": "a call"})
    proposal.refresh_from_db()
    assert proposal.unexplained == ""
    assert 'id="ask-reason"' not in page_of(operating, proposal)
    tell(operating, proposal, "resume")
    assert proposal.state == "executing"
    tell(operating, proposal, "finish-step", "lunch")
    assert "It stops after the step in progress" in page_of(operating, proposal)
    tell(operating, proposal, "stop", "now")
    assert (proposal.state, proposal.unexplained) == ("stopped", "")
    reasons = AuditEntry.objects.filter(object=str(proposal)).values_list("reason", flat=True)
    assert {"a call", "lunch", "now"} <= set(reasons)


def test_it_is_rolled_back_by_its_seal(
    approving: Client, operating: Client, proposal: Proposal
) -> None:
    start(approving, proposal)
    step_through(proposal)
    path = path_to(proposal, "roll-back/")
    wrong = operating.post(path, {"seal": "0" * 64, "reason": "worse"})
    assert said(wrong) == "The fingerprint does not name these actions."
    tell(operating, proposal, "roll-back", "worse")
    assert proposal.state == "rolling back"
    assert 'data-state="rolling back"' in page_of(operating, proposal)
    step_through(proposal)
    carried_out(proposal)
    content = page_of(operating, proposal)
    assert proposal.state == "rolled back"
    assert "reverted in step" in content


def test_no_way_back_is_offered_from_nothing(operating: Client, proposal: Proposal) -> None:
    """A plan that failed before its first move has nothing to undo."""
    Proposal.objects.filter(pk=proposal.pk).update(state="failed")
    content = page_of(operating, proposal)
    assert offered(content) == set()
    assert "/request-again/" in content


def test_a_verb_that_the_state_does_not_allow_is_told(
    approving: Client, proposal: Proposal
) -> None:
    told = tell(approving, proposal, "resume")
    assert told == "The proposal is ready: that does not allow “resume”."
    assert approving.post(path_to(proposal, "explode/")).status_code == 404


def test_the_steps_say_what_they_took(approving: Client, proposal: Proposal) -> None:
    start(approving, proposal)
    step_through(proposal)
    content = page_of(approving, proposal)
    assert f"1 of {len(proposal.actions)} actions applied" in content
    assert "1 applied" in content
    assert "1.0 kB" in content
    assert "700 ms" in content
    assert ">Now</th>" not in content, "the values of the snapshot are not those of now"
    assert "applied in step 1" in content
    assert "applying in step 2" in content
    assert "3 actions" in content.split('id="say-roll-back"')[1].split("</p>")[0]
    assert content.count('class="done') >= 1, "a measured transfer"
    assert content.count('class="plan"') >= len(proposal.actions) // 2, "planned transfers"
    figures = approving.get(path_to(proposal, "steps.json")).json()["figures"]
    assert figures["steps"]["data"][1]["x"] == [0, 1]


def test_what_it_waits_for_is_told(approving: Client, proposal: Proposal) -> None:
    start(approving, proposal)
    send_heartbeats(redis_client(), [proposal.cluster])
    Execution.objects.update(waits="p95 latency 5,000 ms is above 1,000 ms")
    assert "because p95 latency 5,000 ms is above" in page_of(approving, proposal)


def test_steps_come_in_pages(approving: Client, proposal: Proposal) -> None:
    start(approving, proposal)
    execution = Execution.objects.get()
    Step.objects.all().update(state="done", acknowledged_at=timezone.now())
    Step.objects.bulk_create(
        Step(
            execution=execution, number=number, direction="forward", first=1, stop=1, state="done",
            published_at=timezone.now(), acknowledged_at=timezone.now(),
        )
        for number in range(2, 41)
    )  # fmt: skip
    assert "40 steps · page 1 of 4" in page_of(approving, proposal)
    last = approving.get(path_to(proposal, "?steps=4")).content.decode()
    assert "?steps=3" in last


def test_drift_is_told_and_asked_anew(approving: Client, proposal: Proposal) -> None:
    """A button, and not a link to a form that has to be filled in again."""
    Node.objects.filter(index=0).update(capacity=100)
    staleness.review_waiting(timezone.now() + staleness.EVERY)
    content = page_of(approving, proposal)
    assert 'data-code="cluster_changed"' in content, "the approval is locked"
    assert "The capacity of nodes 0 has changed" in content
    answer = approving.post(path_to(proposal, "request-again/"))
    anew = Proposal.objects.get(base=proposal)
    assert answer["Location"] == path_to(anew)
    assert (anew.algorithm, anew.parameters) == (proposal.algorithm, proposal.parameters)


def test_the_fleet_and_the_cluster_show_what_is_carried_out(
    approving: Client, proposal: Proposal
) -> None:
    start(approving, proposal)
    step_through(proposal)
    assert f"proposal {proposal.pk}</a> executing" in approving.get("/").content.decode()
    part = approving.get("/clusters/sf/cards/", headers={"HX-Request": "true"})
    aside = part.content.decode()
    assert f"Proposal {proposal.pk}" in aside
    assert f"1 of {len(proposal.actions)} actions" in aside


def test_tasks_of_split_queries_are_planned_by_the_migration_planner(
    operating: Client, operator: Actor, cluster: Cluster
) -> None:
    form = operating.get("/clusters/sf/proposals/form/?planner=migration").content.decode()
    assert '<option value="single_step" selected>' in form
    assert 'id="p-tau"' in form
    assert 'value="mtm"' not in form, "it needs what no snapshot has"
    made.placed_split(operator, cluster)
    Node.objects.filter(index=0).update(active=False)
    values = {"planner": "migration", "algorithm": "single_step", "tau": "0.5"}
    operating.post("/clusters/sf/proposals/ask/", values)
    asked = Proposal.objects.get(planner="migration")
    assert asked.parameters == {"tau": 0.5}
    computation.compute(asked.pk)
    asked.refresh_from_db()
    assert asked.state == "ready", asked.error
    task = moves_of(asked)[0].task
    assert f'<span class="tag">task {task}</span>' in page_of(operating, asked)


@pytest.mark.parametrize(
    ("values", "fault"),
    [({"planner": "weather"}, "Must be one of placement, migration, admission"),
     ({"planner": "migration", "algorithm": "mms"}, "no algorithm")],
)  # fmt: skip
def test_a_planner_that_is_not_there_is_refused(
    operating: Client, cluster: Cluster, values: dict[str, str], fault: str
) -> None:
    answer = operating.post("/clusters/sf/proposals/ask/", values)
    assert answer.status_code == 422
    assert fault in answer.content.decode()


def granted(name: str, cluster: Cluster, role: str) -> Client:
    user = User.objects.create_user(name)
    Grant.objects.create(user=user, cluster=cluster, role=role, granted_at=timezone.now())
    return browser_of(Actor(user))


@pytest.mark.parametrize(
    ("role", "expected"),
    [("viewer", set()), ("operator", set()), ("approver", {"approve", "reject"})],
)
def test_a_role_on_one_cluster_counts_on_its_pages_alone(
    cluster: Cluster, proposal: Proposal, role: str, expected: set[str]
) -> None:
    other = Cluster.objects.create(slug="other", name="Elsewhere", slots=1)
    client = granted("anna", cluster, role)
    assert offered(page_of(client, proposal)) == expected
    assert client.get(f"/clusters/{other.slug}/").status_code == 404
    fleet = client.get("/").content.decode()
    assert "/clusters/sf/" in fleet
    assert "Elsewhere" not in fleet


def _reject(client: Client, proposal: Proposal) -> None:
    tell(client, proposal, "reject", "not during the fair")


def _stop(client: Client, proposal: Proposal) -> None:
    tell(client, start(client, proposal), "stop", "enough")


@pytest.mark.parametrize("ended", [_reject, _stop])
def test_what_has_ended_asks_for_nothing_any_more(
    approving: Client, proposal: Proposal, ended: Callable[[Client, Proposal], None]
) -> None:
    """No page polls for ever."""
    ended(approving, proposal)
    assert "weir:tick" not in page_of(approving, proposal)


def test_the_page_shows_since_when_it_drifts(approving: Client, proposal: Proposal) -> None:
    """Before the approval and while the execution waits; not afterwards."""
    staleness.review_waiting(timezone.now() + staleness.EVERY)
    assert approving.get(path_to(proposal)).context["drift"]["drifting_since"] is None
    start(approving, proposal)
    rates = dict(Stream.objects.values_list("pk", "rate"))
    Stream.objects.update(rate=1000.0)
    step_through(proposal)
    shown = approving.get(path_to(proposal))
    assert shown.context["drift"]["exceeded"]
    assert not shown.context["drift"]["stale"]
    assert proposal.drifting_since is not None
    assert f'datetime="{proposal.drifting_since.isoformat()}"' in shown.content.decode()
    for pk, rate in rates.items():
        Stream.objects.filter(pk=pk).update(rate=rate)
    # Without the pause between two comparisons.
    Execution.objects.update(not_before=None)
    progression.advance(proposal.pk)
    assert approving.get(path_to(proposal)).context["drift"] is None
