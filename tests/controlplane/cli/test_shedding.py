"""Load shedding at the terminal."""

from typing import Any

import pytest
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.models import ArmedLadder, Cluster, Query
from tests.controlplane.cli.conftest import Weir
from tests.support.shedding import busy_cluster

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.nightly("commands")]


@pytest.fixture
def by(operator: Actor, sf: Cluster) -> dict[str, Any]:
    busy_cluster(operator, sf, timezone.now())
    return {"user": operator.name}


def test_a_ladder_is_shown_armed_and_disarmed(weir: Weir, by: dict[str, Any], sf: Cluster) -> None:
    done = weir("shedding", "show", "sf", **by)
    assert done.code == 0, done.err
    for text in ("armed", "factor", "low", "high"):
        assert text in done.out
    assert weir("shedding", "arm", "sf", **by).code != 0
    assert by["user"] in weir("shedding", "arm", "sf", "--reason", "sale", **by).out
    assert ArmedLadder.objects.get(cluster=sf).reason == "sale"
    report = weir("shedding", "show", "sf", "--json", **by).json
    assert (report["armed"], report["rungs"][0]["number"], "ladder" in report) == (True, 0, False)
    assert weir("shedding", "disarm", "sf", "--reason", "over", **by).code == 0
    assert not ArmedLadder.objects.exists()


def test_a_ladder_is_disarmed_for_an_hour(weir: Weir, by: dict[str, Any]) -> None:
    weir("shedding", "arm", "sf", "--reason", "sale", **by)
    arguments = ("shedding", "disarm", "sf", "--minutes", "60", "--reason", "a test")
    assert "arm at" in weir(*arguments, **by).out
    assert weir(*arguments, "--json", **by).json["arm_at"]


def test_weights(weir: Weir, by: dict[str, Any]) -> None:
    arguments = ("shedding", "weights", "sf", "low", "--weight", "3", "--floor", "0.25")
    assert weir(*arguments, **by).code == 0
    query = Query.objects.get(name="low")
    assert (query.shedding_weight, query.shedding_floor) == (3.0, 0.25)
    assert weir("shedding", "weights", "sf", "low", "--floor", "2", **by).code != 0


def test_a_rung_is_activated_and_released(weir: Weir, by: dict[str, Any], sf: Cluster) -> None:
    weir("shedding", "arm", "sf", "--reason", "needed", **by)
    done = weir("shedding", "activate", "sf", "1", "--minutes", "5", "--reason", "a test", **by)
    assert done.code == 0, done.err
    assert ArmedLadder.objects.get(cluster=sf).value.least == 1.0
    assert weir("shedding", "release", "sf", **by).code == 0
    assert ArmedLadder.objects.get(cluster=sf).value.least == 0.0
