"""Producers that nobody trusts: their tokens append to one cluster, and end in time."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from controlplane.access import tokens
from controlplane.access.roles import PRODUCER, Actor
from controlplane.errors import Invalid
from controlplane.models import ApiToken, AuditEntry, Cluster, Grant
from controlplane.wire import dead_letters
from controlplane.wire.log.values import START, Log, LogPosition
from controlplane.wire.records.record_codec import decode_block
from tests.controlplane.api.callers import JSON, granted, user_of
from tests.support.cluster import stream_id

pytestmark = pytest.mark.django_db(transaction=True)
ROOT = "/api/v1/clusters/sf/streams"
GOOD = {"ts": 1_211_587_200_000, "car": 17, "x": 52300, "y": 65100, "speed": 830}


def producer_of(by: Actor, cluster: Cluster, name: str = "loader") -> Client:
    """Return a client with a new token of a producer."""
    secret = tokens.make(replace(by, is_confirmed=True), name, PRODUCER, cluster)[1]
    return Client(enforce_csrf_checks=True, headers={"authorization": f"Bearer {secret}"})


def append(client: Client, rows: list[Any], stream: str = "s1", **query: Any) -> Any:
    body, words = json.dumps({"records": rows}), "&".join(f"{k}={v}" for k, v in query.items())
    return client.post(f"{ROOT}/{stream}/records?{words}", body, content_type=JSON)


def cars(log: Log, cluster: Cluster, name: str = "s1") -> list[int]:
    """Return the cars in the log of a stream, in order."""
    stream, end = stream_id(cluster, name), log.position_after(LogPosition(START, 0), 10**9)
    found = log.read_streams([stream], START, end.position).get(stream, [])
    return [row["car"] for entry in found for row in decode_block(entry.block).records.to_pylist()]


def test_a_producer_reads_a_schema_and_appends(operator: Actor, sf: Cluster, log: Log) -> None:
    client = producer_of(operator, sf)
    schema = client.get(f"{ROOT}/s1/schema").json()
    assert {column["name"] for column in schema["columns"]} == set(GOOD)
    assert append(client, [GOOD], producer="a", sequence=1).status_code == 201
    assert append(client, [GOOD], producer="a", sequence=1).status_code == 201
    assert cars(log, sf) == [17]
    row = ApiToken.objects.get(name="loader")
    assert row.last_used_at is not None


def test_it_reaches_no_other_cluster(operator: Actor, sf: Cluster) -> None:
    """One that it may not append to does not differ from one that does not exist."""
    Cluster.objects.create(slug="ny", name="NY")
    client = producer_of(operator, sf)
    answers = [
        client.post(f"/api/v1/clusters/{slug}/streams/s1/records", "{}", content_type=JSON)
        for slug in ("ny", "nowhere")
    ]
    assert [answer.status_code for answer in answers] == [404, 404]


def test_no_producer_uses_up_the_sequences_of_another(
    operator: Actor, sf: Cluster, log: Log
) -> None:
    """The highest sequence would make all others of the same producer too old."""
    bad, good = producer_of(operator, sf, "bad"), producer_of(operator, sf, "good")
    assert append(bad, [GOOD], producer="x", sequence=2**53 - 1).status_code == 201
    assert append(good, [GOOD | {"car": 1}], producer="x", sequence=1).status_code == 201
    # A renewed token continues: what it appended before is not appended twice.
    renewed = producer_of(operator, sf, "good")
    assert append(renewed, [GOOD | {"car": 1}], producer="x", sequence=1).status_code == 201
    assert append(renewed, [GOOD | {"car": 2}], producer="x", sequence=1).json()["code"] == (
        "stamp_reused"
    )
    assert cars(log, sf) == [17, 1]
    assert append(good, [GOOD], producer="y" * 100, sequence=1).status_code == 422


def test_its_bad_records_are_dead_letters_of_their_stream(
    operator: Actor, sf: Cluster, log: Log, redis_client: Any
) -> None:
    client = producer_of(operator, sf)
    answer = append(client, [GOOD, {"car": "no"}], on_bad="dead_letter")
    assert (answer.status_code, answer.json()["dead_letters"]) == (201, 1)
    letters = list(dead_letters.every(redis_client, "sf"))
    assert [letter.stream for letter in letters] == [stream_id(sf, "s1")]
    assert cars(log, sf) == [17]


def test_a_producer_ends_with_its_token_and_the_role_of_its_user(
    sf: Cluster, log: Log, operator: Actor
) -> None:
    person = granted("operator", sf, "kim")
    client, user = producer_of(person, sf), user_of(person)
    assert append(client, [GOOD]).status_code == 201
    Grant.objects.filter(user=user).update(role="viewer")
    assert append(client, [GOOD]).status_code == 403
    Grant.objects.filter(user=user).update(role="operator")
    User.objects.filter(pk=user.pk).update(is_active=False)
    assert append(client, [GOOD]).status_code == 401
    User.objects.filter(pk=user.pk).update(is_active=True)
    ApiToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert append(client, [GOOD]).status_code == 401
    ApiToken.objects.update(expires_at=timezone.now() + timedelta(days=1))
    assert append(client, [GOOD]).status_code == 201
    tokens.revoke(person, ApiToken.objects.get().pk)
    assert append(client, [GOOD]).status_code == 401
    actions = AuditEntry.objects.filter(action__startswith="token.").order_by("pk")
    assert [entry.action for entry in actions if entry.action != "token.expired"] == [
        "token.create", "token.revoke",
    ]  # fmt: skip
    assert actions[0].after["role"] == PRODUCER
    assert cars(log, sf) == [17, 17]


def test_a_deleted_cluster_takes_its_producers_along(operator: Actor, sf: Cluster) -> None:
    producer_of(operator, sf)
    sf.delete()
    assert not ApiToken.objects.exists()


def test_only_an_operator_of_the_cluster_makes_its_producers(sf: Cluster) -> None:
    viewer = granted("viewer", sf)
    for by, cluster in ((viewer, sf), (granted("operator", sf, "kim"), None)):
        with pytest.raises(Invalid) as refused:
            tokens.make(replace(by, is_confirmed=True), "loader", PRODUCER, cluster)
        assert set(refused.value.fields) == {"cluster"}
