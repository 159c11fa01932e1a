"""Load shedding at the terminal."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.models import ArmedLadder, Cluster, Query, SheddingInterval
from tests.controlplane.cli.conftest import Weir
from tests.support.shedding import busy_cluster

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def by(operator: Actor, sf: Cluster) -> dict[str, Any]:
    busy_cluster(operator, sf, timezone.now())
    return {"user": operator.name}


def test_a_ladder_is_shown_armed_and_disarmed(weir: Weir, by: dict[str, Any], sf: Cluster) -> None:
    done = weir("shedding", "show", "sf", **by)
    assert done.code == 0, done.err
    for text in ("not armed", "input factor", "nothing", "low", "high"):
        assert text in done.out
    assert weir("shedding", "arm", "sf", **by).code != 0
    assert f"armed by {by['user']}" in weir("shedding", "arm", "sf", "--reason", "sale", **by).out
    assert ArmedLadder.objects.get(cluster=sf).reason == "sale"
    report = weir("shedding", "show", "sf", "--json", **by).json
    assert (report["armed"], report["rungs"][0]["number"], "ladder" in report) == (True, 0, False)
    assert "no ladder is armed" in weir("shedding", "disarm", "sf", "--reason", "over", **by).out
    assert not ArmedLadder.objects.exists()


def test_a_ladder_is_disarmed_for_an_hour(weir: Weir, by: dict[str, Any]) -> None:
    weir("shedding", "arm", "sf", "--reason", "sale", **by)
    arguments = ("shedding", "disarm", "sf", "--minutes", "60", "--reason", "a test")
    done = weir(*arguments, **by)
    assert "it is armed again at" in done.out, done.err
    assert "armed again" in weir("shedding", "show", "sf", **by).out
    assert weir(*arguments, "--json", **by).json["arm_at"]


def test_weights(weir: Weir, by: dict[str, Any]) -> None:
    arguments = ("shedding", "weights", "sf", "low", "--weight", "3", "--floor", "0.25")
    assert weir(*arguments, **by).code == 0
    query = Query.objects.get(name="low")
    assert (query.shedding_weight, query.shedding_floor) == (3.0, 0.25)
    assert weir("shedding", "weights", "sf", "low", "--floor", "2", **by).code != 0


def test_history_and_drill(weir: Weir, by: dict[str, Any]) -> None:
    assert "nothing was dropped" in weir("shedding", "history", "sf", **by).out
    done = weir("shedding", "drill", "sf", **by)
    assert "above the capacity" in done.out, done.err
    assert weir("shedding", "drill", "sf", "--json", **by).json["dropped"] == 0
    past = weir("shedding", "drill", "sf", "--from", "2026-01-01", "--to", "2026-01-02", **by)
    assert past.code != 0


def test_the_history_has_costs(weir: Weir, by: dict[str, Any], sf: Cluster) -> None:
    now, stream = timezone.now(), sf.streams.get(name="s0").pk
    SheddingInterval.objects.create(
        cluster=sf, rung=1, position=0.7, started_at=now - timedelta(minutes=9),
        ended_at=now - timedelta(minutes=8), read=1000, dropped=400,
        by_edge=[[stream, Query.objects.get(name="low").pk, 400]], by_stream=[[stream, 1000]],
    )  # fmt: skip
    Query.objects.update(placed_at=now - timedelta(hours=1))
    assert "low 60 %" in weir("shedding", "history", "sf", **by).out
    (row,) = weir("shedding", "history", "sf", "--json", **by).json
    assert (row["queries"][0]["dropped"], row["lossy_queries"], row["is_over"]) == (400, 1, True)
    intervals = weir("shedding", "history", "sf", "--intervals", "--json", **by).json
    assert row["intervals"] == intervals
    assert "low 60 %" in weir("shedding", "history", "sf", "--intervals", **by).out


def test_what_is_missing_is_named(weir: Weir, operator: Actor, sf: Cluster) -> None:
    assert "No query runs" in weir("shedding", "show", "sf", user=operator.name).out


def test_a_rung_is_activated_and_released(weir: Weir, by: dict[str, Any], sf: Cluster) -> None:
    weir("shedding", "arm", "sf", "--reason", "needed", **by)
    done = weir("shedding", "activate", "sf", "1", "--minutes", "5", "--reason", "a test", **by)
    assert "rung 1 is active until" in done.out, done.err
    assert ArmedLadder.objects.get(cluster=sf).value.least == 1.0
    assert "no rung is activated" in weir("shedding", "release", "sf", **by).out
    assert ArmedLadder.objects.get(cluster=sf).value.least == 0.0
