"""Idempotency keys: sent again, a POST has one effect and the same answer."""

import os
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import OperationalError, connection
from django.test import Client
from django.utils import timezone

from controlplane.access import idempotency
from controlplane.access.roles import Actor
from controlplane.clusters import changes
from controlplane.errors import Away, InProgress
from controlplane.models import AuditEntry, Cluster, KeptAnswer, Query
from controlplane.wire.log import open_log
from tests.controlplane.api.callers import get, post, scripted, user_of
from tests.controlplane.api.streams.test_records import GOOD, entries
from tests.support.texts import SUMMARY_JSON

pytestmark = pytest.mark.django_db(transaction=True)
QUERIES = "/clusters/sf/queries"
QUERY = {"name": "q", "streams": ["s0"], "text": SUMMARY_JSON}
KEY = {"idempotency-key": "3f1c"}


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


def test_a_claim_of_a_process_that_died_before_its_effect_is_taken_over(script: Client) -> None:
    """Nothing was committed: the request runs once the claim is over."""
    post(script, QUERIES, QUERY, **KEY)
    Query.objects.all().delete()
    KeptAnswer.objects.update(status=None, claimed_until=timezone.now(), applied_by="")
    assert post(script, QUERIES, QUERY, **KEY).status_code == 201
    assert Query.objects.count() == 1


def test_an_effect_whose_answer_was_lost_is_not_repeated(script: Client) -> None:
    """A kill between the commit and the storing: 409 with the request's id in the audit log."""
    post(script, "/clusters/sf/start", {"reason": "first"}, **KEY)
    KeptAnswer.objects.update(status=None, claimed_until=timezone.now())
    answer = post(script, "/clusters/sf/start", {"reason": "first"}, **KEY)
    assert (answer.status_code, answer.json()["code"]) == (409, "answer_lost")
    entry = AuditEntry.objects.get(action="cluster.start")
    assert answer.json()["data"]["request"] == entry.request
    assert KeptAnswer.objects.get().status is None


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_process_that_dies_in_a_request(script: Client, moment: str) -> None:
    """Killed before the commit of the effect, it can be repeated; after it, nothing runs twice."""

    def dying(*_: object, **__: object) -> None:
        raise SystemExit

    place = "controlplane.topology.queries.audit.record" if moment == "before" else (
        "controlplane.api.queries.routes.row_of"
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(place, dying)
        # A killed process stores and releases nothing.
        patch.setattr(idempotency, "release", lambda *_, **__: None)
        with pytest.raises(SystemExit):
            post(script, QUERIES, QUERY, **KEY)
    assert post(script, QUERIES, QUERY, **KEY).json()["code"] == "in_progress"
    KeptAnswer.objects.update(claimed_until=timezone.now())
    code = post(script, QUERIES, QUERY, **KEY).json().get("code")
    assert code == (None if moment == "before" else "answer_lost")
    assert Query.objects.count() == 1


def test_an_error_of_the_server_is_not_kept(
    script: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """503 before an effect: the same request has its effect later."""

    def away(*_: object, **__: object) -> None:
        raise OperationalError("database is locked")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("controlplane.topology.queries.audit.record", away)
        assert post(script, QUERIES, QUERY, **KEY).status_code == 503
    assert not KeptAnswer.objects.exists()
    assert post(script, QUERIES, QUERY, **KEY).status_code == 201


def test_an_answer_that_cannot_be_stored_is_given(
    script: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object, **__: object) -> None:
        raise OperationalError("database is locked")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(idempotency, "store_answer", away)
        assert post(script, QUERIES, QUERY, **KEY).status_code == 201
    KeptAnswer.objects.update(claimed_until=timezone.now())
    assert post(script, QUERIES, QUERY, **KEY).json()["code"] == "answer_lost"


def test_a_request_runs_outside_of_transactions(
    script: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others write while a request with a key waits, such as for a preview."""
    seen = []

    def waiting(*_: object, **__: object) -> None:
        seen.append(connection.in_atomic_block)
        raise Away("preview_away", "No worker", 5)

    monkeypatch.setattr("controlplane.explain.drafts.preview.preview", waiting)
    answer = post(script, f"{QUERIES}/preview", QUERY, **KEY)
    assert (answer.status_code, answer.json()["code"]) == (503, "preview_away")
    assert seen == [False]


def test_records_with_a_key_are_appended_once(script: Client, sf: Cluster, redis_url: str) -> None:
    """The log knows the key, also where the process died before the answer was stored."""
    sent = "/clusters/sf/streams/s1/records", {"records": [GOOD]}
    first = post(script, *sent, **KEY)
    assert first.status_code == 201, first.content
    KeptAnswer.objects.all().delete()
    assert post(script, *sent, **KEY).json()["position"] == first.json()["position"]
    assert post(script, *sent, **{"idempotency-key": "other"}).status_code == 201
    log = open_log("", "sf", redis_url)
    try:
        assert len(entries(log)) == 2
    finally:
        log.close()


@pytest.mark.parametrize("key", ["k" * 201, "a\tb", "a\x00b", "\u00e9", "", "with blank"])
def test_a_key_of_other_characters_is_refused(script: Client, key: str) -> None:
    answer = post(script, QUERIES, QUERY, **{"idempotency-key": key})
    assert (answer.status_code, list(answer.json()["fields"])) == (422, ["Idempotency-Key"])
    assert not Query.objects.exists()


def test_a_read_ignores_a_key(script: Client) -> None:
    assert get(script, QUERIES, **KEY).status_code == 200
    assert not KeptAnswer.objects.exists()


def test_a_user_has_a_limited_number_of_answers(
    script: Client, operator: Actor, approver: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest go first, by number and by bytes; those of others and running ones stay."""
    monkeypatch.setattr(idempotency, "_PRUNE_EVERY", 1)
    monkeypatch.setattr(idempotency, "MAX_ANSWERS", 3)
    keep(user_of(approver), "theirs", b"")
    running = idempotency.claim(user_of(operator), "running", "x")
    for number in range(5):
        keep(user_of(operator), f"k{number}", b"")
    rows = KeptAnswer.objects.order_by("pk")
    assert [row.key for row in rows] == ["theirs", "running", "k2", "k3", "k4"]
    monkeypatch.setattr(idempotency, "MAX_ANSWER_BYTES", 10_000)
    keep(user_of(operator), "random", os.urandom(9_900))
    assert [row.key for row in rows.all()] == ["theirs", "running", "k3", "k4", "random"]
    assert isinstance(running, idempotency.KeyClaim)
    assert idempotency.store_answer(running, 200, "text/plain", b"")


def keep(user: User, key: str, body: bytes) -> None:
    claimed = idempotency.claim(user, key, "x")
    assert isinstance(claimed, idempotency.KeyClaim)
    assert idempotency.store_answer(claimed, 200, "text/plain", body)


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


def test_a_change_under_a_lost_claim_is_undone(operator: Actor, sf: Cluster) -> None:
    """Two that both believe to hold the key: only the one that holds it changes anything."""
    user = user_of(operator)
    lost = idempotency.claim(user, "k", "x")
    KeptAnswer.objects.update(claimed_until=timezone.now())
    held = idempotency.claim(user, "k", "x")
    assert isinstance(lost, idempotency.KeyClaim)
    assert isinstance(held, idempotency.KeyClaim)
    before = sf.desired
    with idempotency.running(lost), pytest.raises(InProgress):
        (changes.stop if before == "running" else changes.start)(operator, sf, "late")
    sf.refresh_from_db()
    assert sf.desired == before
    with idempotency.running(held):
        (changes.stop if before == "running" else changes.start)(operator, sf, "now")
    assert not idempotency.store_answer(lost, 200, "text/plain", b"lost")
    assert idempotency.store_answer(held, 200, "text/plain", b"held")
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
