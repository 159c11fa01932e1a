"""What operators do on the pages: the services decide, the pages say what came of it."""

import json
from collections.abc import Iterable
from typing import Any

import pytest
from django.contrib.messages import get_messages
from django.test import Client

from controlplane.models import AuditEntry, Cluster, Node, Proposal, Query, Task
from controlplane.plans.plan import Plan, TaskMove, rows_of
from controlplane.plans.proposal_states import SAID
from dashboard.queries.forms import DEFAULTS
from tests.support.destinations import list_destinations

QUERY = {"name": "fresh", "streams": "s0, s1", "aggregates": "n = count(*)"} | DEFAULTS
POSTS = [
    "queries/end/", "proposals/ask/", "proposals/{proposal}/request-again/",
    *(f"proposals/{{proposal}}/{verb.path}/" for verb in SAID), "start/", "stop/",
    "nodes/0/capacity/", "master/",
]  # fmt: skip


def said(answer: Any) -> str:
    """Return the messages that the next page shows."""
    told: Iterable[object] = get_messages(answer.wsgi_request)
    return " ".join(str(message) for message in told)


def test_a_verb_is_not_a_link(operating: Client, ready: Proposal) -> None:
    """Nothing changes on GET, and the page says so."""
    for path in POSTS:
        answer = operating.get(f"/clusters/sf/{path.format(proposal=ready.pk)}")
        assert answer.status_code == 405, path
        assert answer.headers["Allow"] == "POST"
        assert "This address takes a form" in answer.content.decode()


def test_a_form_from_elsewhere_is_refused(operating: Client, sf: Cluster) -> None:
    client = Client(enforce_csrf_checks=True)
    client.cookies = operating.cookies
    assert client.post("/clusters/sf/stop/").status_code == 403


def test_a_query_is_submitted(operating: Client, sf: Cluster) -> None:
    answer = operating.post("/clusters/sf/queries/new/", QUERY)
    query = Query.objects.get(name="fresh")
    assert answer["Location"] == f"/clusters/sf/queries/{query.pk}/"
    assert set(query.streams.values_list("name", flat=True)) == {"s0", "s1"}


def test_a_faulty_query_keeps_what_was_typed(operating: Client, sf: Cluster) -> None:
    answer = operating.post("/clusters/sf/queries/new/", QUERY | {"streams": "s0 nowhere"})
    assert answer.status_code == 422
    content = answer.content.decode()
    assert "There is no stream nowhere" in content
    assert "s0 nowhere</textarea>" in content


@pytest.mark.parametrize(
    ("field", "value", "fault"),
    [
        ("name", "a", "is called a already"),
        ("streams", "", "Name 1 to"),
        ("ends_at", "2020-01-01T00:00", "future"),
        ("ends_at", "x", "date"),
    ],
)  # fmt: skip
def test_a_field_is_checked_while_it_is_typed(
    operating: Client, sf: Cluster, field: str, value: str, fault: str
) -> None:
    values = QUERY | {field: value, "field": field}
    content = operating.post("/clusters/sf/queries/check/", values).content.decode()
    assert fault in content
    assert f'id="faults-{field}"' in content


def test_a_good_field_has_no_faults(operating: Client, sf: Cluster) -> None:
    values = QUERY | {"field": "name", "streams": "nonsense"}
    content = operating.post("/clusters/sf/queries/check/", values).content.decode()
    assert "></p>" in content


def test_queries_are_ended_in_bulk_with_a_reason(operating: Client, sf: Cluster) -> None:
    answer = operating.post("/clusters/sf/queries/end/", {"names": ["a", "b"], "reason": "over"})
    assert "2 queries are ending." in operating.get(answer["Location"]).content.decode()
    assert Query.objects.filter(state="ending").count() == 2
    assert AuditEntry.objects.get(action="query.end").reason == "over"


def test_ending_what_does_not_live_is_told(operating: Client, sf: Cluster) -> None:
    answer = operating.post("/clusters/sf/queries/end/", {"names": ["a", "ghost"]})
    assert "No live query is called ghost" in said(answer)
    assert not Query.objects.filter(state="ending").exists()


def test_a_proposal_is_asked_for_with_its_parameters(operating: Client, sf: Cluster) -> None:
    values = {"algorithm": "off_rand", "nu": "0.2", "seed": "7"}
    answer = operating.post("/clusters/sf/proposals/ask/", values)
    proposal = Proposal.objects.get()
    assert answer["Location"] == f"/clusters/sf/proposals/{proposal.pk}/"
    assert proposal.parameters == {"nu": 0.2, "seed": 7}


def test_a_choice_is_asked_for_by_its_name(operating: Client, sf: Cluster) -> None:
    """What the form offers, the service takes; anything else is told at the field."""
    form = operating.get("/clusters/sf/proposals/form/?algorithm=refined").content.decode()
    assert '<select id="p-start" name="start"' in form
    path, values = "/clusters/sf/proposals/ask/", {"algorithm": "refined", "start": "mms"}
    operating.post(path, values)
    assert Proposal.objects.get().parameters["start"] == "mms"
    refused = operating.post(path, values | {"start": "best"})
    assert refused.status_code == 422
    assert "must be one of least_cost, ic, mms" in refused.content.decode()


@pytest.mark.parametrize(
    ("values", "fault"),
    [({"nu": "x"}, "Must be a number"), ({"nu": "-1"}, "must be at least 0"),
     ({"seed": "1.5"}, "whole number"), ({"algorithm": "magic"}, "no algorithm")],
)  # fmt: skip
def test_faulty_parameters_are_told_at_their_field(
    operating: Client, sf: Cluster, values: dict[str, str], fault: str
) -> None:
    answer = operating.post("/clusters/sf/proposals/ask/", {"algorithm": "off_rand"} | values)
    assert answer.status_code == 422
    assert fault in answer.content.decode()


def test_the_form_carries_the_seal_and_approves_exactly_it(
    approving: Client, ready: Proposal
) -> None:
    page = f"/clusters/sf/proposals/{ready.pk}/"
    assert ready.seal in approving.get(page).content.decode()
    approving.post(f"{page}approve/", {"seal": ready.seal})
    ready.refresh_from_db()
    assert (ready.state, ready.approved_by) == ("approved", "a-approver")


def test_a_stale_proposal_says_what_drifted(approving: Client, ready: Proposal) -> None:
    """The page shows it also later, not only as an answer."""
    Node.objects.filter(index=3).update(active=False)
    page = f"/clusters/sf/proposals/{ready.pk}/"
    answer = approving.post(f"{page}approve/", {"seal": ready.seal})
    assert "Stale" in said(answer)
    content = approving.get(page).content.decode()
    assert 'class="headline bad" id="headline"' in content
    assert "odes 3 are no longer active" in content


def test_a_rejection_needs_a_reason(approving: Client, ready: Proposal) -> None:
    page = f"/clusters/sf/proposals/{ready.pk}/reject/"
    assert "Enter a reason" in said(approving.post(page, {"reason": " "}))
    approving.post(page, {"reason": "not today"})
    ready.refresh_from_db()
    assert ready.state == "rejected"


def test_a_computation_is_cancelled(operating: Client, sf: Cluster) -> None:
    operating.post("/clusters/sf/proposals/ask/", {"algorithm": "mms"})
    proposal = Proposal.objects.get()
    page = f"/clusters/sf/proposals/{proposal.pk}/"
    assert 'data-state="computing"' in operating.get(page).content.decode()
    operating.post(f"{page}cancel/")
    proposal.refresh_from_db()
    assert proposal.state == "rejected"
    assert "There is no plan" in operating.get(page).content.decode()


def test_actions_are_downloaded_without_formulas(operating: Client, ready: Proposal) -> None:
    """A query's name must not run as a formula in a reviewer's spreadsheet."""
    query = Query.objects.all()[0]
    Query.objects.filter(pk=query.pk).update(name="=1+1")
    rows = rows_of([TaskMove(query.pk, 0, 0, 1, 5)])
    Proposal.objects.filter(pk=ready.pk).update(actions=rows)
    table = operating.get(f"/clusters/sf/proposals/{ready.pk}/actions.csv").content.decode()
    assert table.splitlines() == [
        "kind,object,task,before,after,bytes,status,step,code",
        "move_tasks,'=1+1,,node 0,node 1,5,waiting,,",
    ]
    answer = operating.get(f"/clusters/sf/proposals/{ready.pk}/actions.json").json()
    stored = json.loads(json.dumps(Plan(rows).to_json()))
    assert answer == {"proposal": ready.pk, "seal": ready.seal, "actions": stored}


def test_capacity_is_declared(operating: Client, sf: Cluster) -> None:
    operating.post("/clusters/sf/nodes/2/capacity/", {"capacity": "1234.5", "reason": "new disk"})
    assert Node.objects.get(index=2).capacity == 1234.5
    operating.post("/clusters/sf/nodes/2/capacity/", {"capacity": "1234.5", "active": "no"})
    assert not Node.objects.get(index=2).active
    operating.post("/clusters/sf/nodes/2/capacity/", {"capacity": "1234.5"})
    assert not Node.objects.get(index=2).active, "what is not sent stays"


@pytest.mark.parametrize("capacity", ["", "x", "-1", "nan", "1e99"])
def test_a_faulty_capacity_is_told(operating: Client, sf: Cluster, capacity: str) -> None:
    answer = operating.post("/clusters/sf/nodes/2/capacity/", {"capacity": capacity})
    assert "Must be above 0" in said(answer)
    assert Node.objects.get(index=2).capacity == 500


@pytest.mark.parametrize(("verb", "desired"), [("start", "running"), ("stop", "stopped")])
def test_a_cluster_is_started_and_stopped(
    operating: Client, sf: Cluster, verb: str, desired: str
) -> None:
    operating.post(f"/clusters/sf/{verb}/", {"reason": "maintenance"})
    sf.refresh_from_db()
    assert sf.desired == desired
    assert Task.objects.count() == 3


def test_an_admin_chooses_among_the_masters_of_the_site(
    operating: Client, administering: Client, sf: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    list_destinations(monkeypatch, "spark://spark:7077")
    assert operating.post("/clusters/sf/master/", {"master": "local[3]"}).status_code == 403
    administering.post(
        "/clusters/sf/master/", {"master": " spark://spark:7077 ", "reason": "grows"}
    )
    sf.refresh_from_db()
    assert sf.master == "spark://spark:7077"
    entry = AuditEntry.objects.get(action="cluster.master")
    assert (entry.before, entry.after) == ({"master": "local[2]"}, {"master": sf.master})


@pytest.mark.parametrize("master", ["spark://", "spark://169.254.169.254:7077", "yarn"])
def test_another_master_is_refused(administering: Client, sf: Cluster, master: str) -> None:
    """A driver would give it the address and password of Redis."""
    answer = administering.post("/clusters/sf/master/", {"master": master})
    assert "local[n]" in said(answer)
    sf.refresh_from_db()
    assert sf.master == "local[2]"
