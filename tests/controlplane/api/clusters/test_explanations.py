"""Explanations over HTTP."""

from datetime import timedelta

import pytest
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.models import Cluster, RoutingVersion, Task
from tests.controlplane.api.callers import get, scripted
from tests.support.cluster import placed, stream_id
from tests.support.explaining import record_past, steps

pytestmark = pytest.mark.django_db(transaction=True)


def test_an_explanation_has_values_and_sentences(operator: Actor, sf: Cluster) -> None:
    (query,) = placed(operator, sf, {"q": ["s0"]})
    node = Task.objects.get(query=query).node.index
    now, rose = timezone.now(), stream_id(sf, "s0")
    RoutingVersion.objects.filter(cluster=sf).update(created_at=now - timedelta(hours=2))
    loads = [steps(100, 600 if index == node else 100, 8) for index in range(4)]
    record_past(sf, now, loads, {rose: steps(100, 600, 8)})
    client = scripted(operator)
    answer = get(client, f"/clusters/sf/explanations/node:{node}").json()
    assert answer["subject"] == f"node:{node}"
    assert (answer["finding"]["grade"], answer["cause"]["stream"]) == ("bad", rose)
    assert answer["streams"]["rows"][0]["id"] == rose
    assert answer["cause"]["text"] in answer["summary"]
    (ranked,) = answer["ranked"]
    assert (ranked["cause"]["stream"], ranked["relation"], ranked["unit"]) == (
        rose, "with", "records/s",
    )  # fmt: skip
    assert ranked["share"] == pytest.approx(1, abs=0.05)
    assert "share about 1" in ranked["text"] or "share about 9" in ranked["text"]
    assert answer["remedies"][0]["planner"] in ("placement", "migration")
    earlier = (now.timestamp() - 900) * 1000
    answer = get(client, f"/clusters/sf/explanations/node:{node}@{round(earlier)}").json()
    assert (answer["finding"]["grade"], answer["is_live"]) == ("good", False)
    assert get(client, "/clusters/sf/explanations/node:77").status_code == 404
    assert get(client, "/clusters/sf/explanations/planet:1").status_code == 422


def test_the_time_is_in_the_calendar(sf: Cluster, viewer: Actor) -> None:
    """At its first day nothing is known; a time without a zone is refused."""
    client, path = scripted(viewer), "/clusters/sf/explanations/node:0?time="
    for time in ("0001-01-01T00:00:00Z", "1969-12-31T23:59:59Z"):
        assert get(client, f"{path}{time}").json()["finding"]["grade"] == "unknown", time
    answer = get(client, f"{path}2026-01-01T00:00:00")
    assert (answer.status_code, list(answer.json()["fields"])) == (422, ["time"])
