"""Load shedding through the API: the ladder, arming, weights, history, drills."""

from datetime import datetime, timedelta

import pytest
from django.test import Client

from controlplane.access.roles import Actor
from controlplane.models import ArmedLadder, Cluster, Query, SheddingInterval
from tests.controlplane.api.callers import get, post, scripted
from tests.support.shedding import busy_cluster

pytestmark = pytest.mark.django_db(transaction=True)
SHEDDING = "/clusters/sf/shedding"


@pytest.fixture
def client(operator: Actor, sf: Cluster, now: datetime) -> Client:
    busy_cluster(operator, sf, now)
    return scripted(operator)


def test_the_ladder_before_and_after_arming(client: Client) -> None:
    body = get(client, SHEDDING).json()
    assert (body["armed"], body["missing_code"], body["rungs"][0]["drops"]) == (False, "", [])
    assert body["headroom"] == pytest.approx(1 / body["factor"] - 1)
    answer = post(client, f"{SHEDDING}/arm", {"reason": "the sale begins"})
    assert answer.status_code == 200, answer.content
    armed = answer.json()
    assert (armed["armed"], armed["reason"], armed["drift"]["reasons"]) == (
        True, "the sale begins", [],
    )  # fmt: skip
    assert [rung["factor"] for rung in armed["rungs"]] == [r["factor"] for r in body["rungs"]]
    assert {query["name"] for query in armed["queries"]} == {"low", "high", "both"}
    assert post(client, f"{SHEDDING}/disarm", {"reason": "over"}).json()["armed"] is False
    assert not ArmedLadder.objects.exists()


def test_a_disarmed_ladder_is_armed_again(client: Client, now: datetime) -> None:
    post(client, f"{SHEDDING}/arm", {"reason": "needed"})
    body = post(client, f"{SHEDDING}/disarm", {"reason": "a test", "minutes": 30}).json()
    arm_at = datetime.fromisoformat(body["arm_at"])
    assert timedelta(minutes=30) <= arm_at - now < timedelta(minutes=35)
    assert (body["armed"], body["disarmed_by"]) == (False, "a-operator")
    answer = post(client, f"{SHEDDING}/disarm", {"reason": "a test", "minutes": -1})
    assert (answer.status_code, list(answer.json()["fields"])) == (422, ["minutes"])
    assert post(client, f"{SHEDDING}/disarm", {"reason": "never"}).json()["arm_at"] is None


def test_refusals_are_problem_details(client: Client) -> None:
    answer = post(client, f"{SHEDDING}/arm", {"reason": ""})
    assert (answer.status_code, list(answer.json()["fields"])) == (422, ["reason"])
    answer = post(client, f"{SHEDDING}/disarm", {"reason": "why not"})
    assert (answer.status_code, answer.json()["code"]) == (409, "not_armed")


def test_what_is_missing_has_a_code(operator: Actor, sf: Cluster) -> None:
    body = get(scripted(operator), SHEDDING).json()
    assert (body["armed"], body["missing_code"], body["rungs"]) == (False, "no_query", [])


def test_weights_and_floors(client: Client) -> None:
    path = "/clusters/sf/queries/low/shedding"
    body = post(client, path, {"shedding_weight": 2.5, "reason": "revenue"}).json()
    assert (body["shedding_weight"], body["shedding_floor"]) == (2.5, 0.0)
    answer = post(client, path, {"shedding_floor": 1.5})
    assert (answer.status_code, list(answer.json()["fields"])) == (422, ["shedding_floor"])


def test_history_and_drill(client: Client, sf: Cluster, now: datetime) -> None:
    stream = sf.streams.get(name="s0").pk
    SheddingInterval.objects.create(
        cluster=sf, rung=2, position=1.5, started_at=now - timedelta(hours=2),
        ended_at=now - timedelta(hours=1), read=100, dropped=9,
        by_edge=[[stream, 0, 9]], by_stream=[[stream, 100]],
    )  # fmt: skip
    Query.objects.update(placed_at=now - timedelta(hours=3))
    (row,) = get(client, f"{SHEDDING}/history").json()
    assert (row["rung"], row["dropped"], row["by_edge"]) == (2, 9, [[stream, 0, 9]])
    assert (row["lossy_queries"], row["quality_lost"]) == (2, pytest.approx(0.09))
    assert [(query["name"], query["kept"]) for query in row["queries"]] == [
        ("high", pytest.approx(0.91)), ("low", pytest.approx(0.91)),
    ]  # fmt: skip
    (episode,) = get(client, f"{SHEDDING}/episodes").json()
    assert episode["intervals"] == [row]
    assert (episode["is_over"], episode["kept"]) == (True, pytest.approx(0.91))
    past = f"start={(now - timedelta(days=9)):%Y-%m-%dT%H:%M:%SZ}"
    stop = f"stop={(now - timedelta(days=8)):%Y-%m-%dT%H:%M:%SZ}"
    assert get(client, f"{SHEDDING}/history?{past}&{stop}").json() == []
    start = f"start={(now - timedelta(minutes=20)):%Y-%m-%dT%H:%M:%SZ}"
    drill = get(client, f"{SHEDDING}/drill?{start}").json()
    assert (drill["dropped"], drill["above_s"], drill["seconds"]) == (0, 0, 10)
    assert drill["points"][0]["input_per_s"] == pytest.approx(600)
    assert get(client, f"{SHEDDING}/drill?{past}&{stop}").json()["code"] == "no_history"
    assert get(client, f"{SHEDDING}/drill?start=yesterday").status_code == 422


def test_a_rung_is_activated_and_released(client: Client) -> None:
    post(client, f"{SHEDDING}/arm", {"reason": "needed"})
    wanted = {"rung": 1, "minutes": 30, "reason": "a test"}
    body = post(client, f"{SHEDDING}/activate", wanted).json()
    assert (body["active_rung"], body["active_reason"]) == (1, "a test")
    answer = post(client, f"{SHEDDING}/activate", wanted | {"rung": 50, "minutes": 0})
    assert (answer.status_code, set(answer.json()["fields"])) == (422, {"rung", "minutes"})
    assert post(client, f"{SHEDDING}/release").json()["active_rung"] == 0
    assert post(client, f"{SHEDDING}/release").json()["code"] == "not_active"
