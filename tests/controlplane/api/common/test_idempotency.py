"""Idempotency keys: sent again, a POST has one effect and the same answer."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.errors import Conflict
from controlplane.integrations import idempotency
from controlplane.models import AuditEntry, Cluster, KeptAnswer, Query
from tests.controlplane.api.callers import post, scripted, user_of
from tests.support.texts import SUMMARY_JSON

pytestmark = pytest.mark.django_db(transaction=True)
QUERIES = "/clusters/sf/queries"
QUERY = {"name": "q", "streams": ["s0"], "text": SUMMARY_JSON}
KEY = {"idempotency-key": "3f1c"}


@pytest.fixture
def script(operator: Actor, sf: Cluster) -> Client:
    """An operator's script."""
    return scripted(operator)


def test_a_repeated_request_gets_the_first_answer(script: Client) -> None:
    """One row, and the same body; the second answer says that it is a copy."""
    first, second = (post(script, QUERIES, QUERY, **KEY) for _ in range(2))
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.content == second.content
    assert "Idempotent-Replayed" not in first
    assert second["Idempotent-Replayed"] == "true"
    assert Query.objects.count() == 1


def test_a_refusal_is_kept_too(script: Client) -> None:
    """A request that is wrong stays wrong."""
    wrong = QUERY | {"streams": ["nowhere"]}
    first, second = (post(script, QUERIES, wrong, **KEY) for _ in range(2))
    assert (first.status_code, second.status_code) == (422, 422)
    assert second["Content-Type"] == "application/problem+json"
    assert second["Idempotent-Replayed"] == "true"


@pytest.mark.parametrize(
    ("path", "body"), [(QUERIES, QUERY | {"name": "r"}), ("/clusters/sf/start", QUERY)]
)
def test_a_key_of_another_request_is_refused(script: Client, path: str, body: Any) -> None:
    """Another body or another address: a fault of the caller, told and without effect."""
    post(script, QUERIES, QUERY, **KEY)
    answer = post(script, path, body, **KEY)
    assert (answer.status_code, answer.json()["code"]) == (422, "key_reused")
    assert Query.objects.count() == 1


def test_a_request_that_still_runs_is_a_conflict(script: Client, operator: Actor) -> None:
    """The second one is told to ask again, and does nothing."""
    post(script, QUERIES, QUERY, **KEY)
    later = timezone.now() + timedelta(seconds=30)
    KeptAnswer.objects.update(status=None, claimed_until=later)
    answer = post(script, QUERIES, QUERY, **KEY)
    assert (answer.status_code, answer.json()["code"]) == (409, "in_progress")
    assert int(answer["Retry-After"]) >= 1


def test_a_claim_of_a_dead_process_is_taken_over(script: Client) -> None:
    """What it had done was rolled back with it."""
    post(script, QUERIES, QUERY, **KEY)
    Query.objects.all().delete()
    KeptAnswer.objects.update(status=None, claimed_until=timezone.now())
    assert post(script, QUERIES, QUERY, **KEY).status_code == 201
    assert Query.objects.count() == 1


def test_a_key_is_of_its_user_alone(script: Client, sf: Cluster, approver: Actor) -> None:
    """Another's answer is not told."""
    post(script, QUERIES, QUERY, **KEY)
    answer = post(scripted(approver), QUERIES, QUERY | {"name": "theirs"}, **KEY)
    assert answer.status_code == 201
    assert Query.objects.count() == 2


def test_who_is_not_known_claims_nothing(script: Client, sf: Cluster) -> None:
    assert post(Client(), QUERIES, QUERY, **KEY).status_code == 401
    assert not KeptAnswer.objects.exists()


def test_what_may_be_tried_again_is_not_kept(viewer: Actor, sf: Cluster) -> None:
    """A role that is given later lets the same request through."""
    script = scripted(viewer)
    assert post(script, QUERIES, QUERY, **KEY).status_code == 403
    user_of(viewer).groups.add(Group.objects.get(name="operator"))
    assert post(script, QUERIES, QUERY, **KEY).status_code == 201


def test_a_key_that_is_none_is_refused(script: Client) -> None:
    answer = post(script, QUERIES, QUERY, **{"idempotency-key": "with blank"})
    assert (answer.status_code, list(answer.json()["fields"])) == (422, ["Idempotency-Key"])


def test_work_that_lost_its_claim_is_undone(operator: Actor, sf: Cluster) -> None:
    """Two that both believe to hold the key: only the one that holds it is heard."""
    user = user_of(operator)
    lost = idempotency.claim(user, "k", "x")
    KeptAnswer.objects.update(claimed_until=timezone.now())
    held = idempotency.claim(user, "k", "x")
    assert isinstance(lost, idempotency.Claim)
    assert isinstance(held, idempotency.Claim)
    with pytest.raises(Conflict):
        idempotency.store_answer(lost, 200, "text/plain", b"lost")
    idempotency.store_answer(held, 200, "text/plain", b"held")
    kept = idempotency.claim(user, "k", "x")
    assert isinstance(kept, KeptAnswer)
    assert idempotency.body_of(kept) == b"held"


def test_old_answers_go(script: Client) -> None:
    post(script, QUERIES, QUERY, **KEY)
    assert idempotency.prune(timezone.now()) == 0
    assert idempotency.prune(timezone.now() + timedelta(hours=25)) == 1


@pytest.mark.both_databases
def test_two_at_once_have_one_effect(operator: Actor, sf: Cluster) -> None:
    """Two threads send the same: one query, one audit row; each answer is the one or “still runs”.

    A round is repeated until the one that lost has the answer, as a caller would.
    """
    at_once = Barrier(2)
    client = scripted(operator)

    def send(name: str) -> Any:
        return post(client, QUERIES, QUERY | {"name": name}, **{"idempotency-key": name})

    def race(name: str) -> int:
        try:
            at_once.wait(timeout=30)
            answer = send(name)
            assert answer.status_code in (201, 409), answer.content
            return int(answer.status_code)
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as threads:
        for round_ in range(8):
            name = f"q{round_}"
            assert 201 in list(threads.map(race, (name, name)))
            assert send(name)["Idempotent-Replayed"] == "true"
    assert Query.objects.count() == 8
    assert AuditEntry.objects.filter(action="query.submit").count() == 8
