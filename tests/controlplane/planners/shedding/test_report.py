"""The report on a ladder: rungs, queries, position, age."""

from datetime import datetime, timedelta

import pytest

from controlplane.access.roles import Actor
from controlplane.catalog.query_settings import set_shedding
from controlplane.models import AuditEntry, Cluster, Query
from controlplane.planners.shedding.arming import arm
from controlplane.planners.shedding.report import ladder_report
from controlplane.planners.shedding.staleness import StaleCode
from controlplane.planners.shedding.windows import RandomReason
from tests.support.admission import arrived
from tests.support.cluster import placed
from tests.support.series import change_newest
from tests.support.watching import measured

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_preview_without_an_armed_ladder(busy: Cluster) -> None:
    report = ladder_report(busy)
    assert (report.armed, report.missing_code, report.position) == (False, "", None)
    assert report.input_per_s == 600
    assert report.factor is not None
    assert report.capacity_per_s == pytest.approx(600 / report.factor)
    assert report.headroom == pytest.approx(1 / report.factor - 1)
    zero, *rungs = report.rungs
    assert (zero.factor, zero.drops, zero.input_kept, zero.quality_lost) == (1.0, (), 1.0, 0.0)
    losses = [rung.quality_lost for rung in rungs]
    assert losses == sorted(losses)
    assert losses[-1] > 0
    by_name = {query.name: query for query in report.queries}
    assert set(by_name) == {"low", "high", "both"}
    assert all(query.kept[0] == 1 for query in report.queries)
    # The weights decide: what is worth less goes first, floors are kept.
    assert by_name["low"].kept[-1] <= by_name["high"].kept[-1]
    assert by_name["high"].kept[-1] >= 0.5 - 1e-9
    drops = rungs[-1].drops
    assert drops
    # A drop of windows has their length, all others a reason: here a union, and other readers.
    assert all((drop.windows_s is None) == (drop.random_reason is not None) for drop in drops)
    reasons = {drop.stream: drop.random_reason for drop in drops}
    assert reasons["s0"] in (RandomReason.READERS, RandomReason.REACTION)
    assert reasons["s1"] is RandomReason.STREAMS


def test_what_is_missing_is_named(sf: Cluster, operator: Actor) -> None:
    assert ladder_report(sf).missing_code == "no_query"
    placed(operator, sf, {"q": ["s0"]})
    report = ladder_report(sf)
    assert (report.missing_code, report.rungs) == ("no_costs", ())
    assert "node 0" in report.missing


def test_the_position_is_the_one_of_the_newest_batch(
    operator: Actor, busy: Cluster, now: datetime
) -> None:
    arm(operator, busy, "needed")
    assert ladder_report(busy).position is None
    change_newest(busy, ladder_position=1.5)
    report = ladder_report(busy)
    assert (report.position, report.rung) == (1.5, 2)
    assert [rung.is_active for rung in report.rungs].index(True) == 2
    assert report.kept is not None
    assert report.kept.quality_lost == pytest.approx(
        (report.rungs[1].quality_lost + report.rungs[2].quality_lost) / 2
    )


def test_a_ladder_becomes_stale(operator: Actor, busy: Cluster, now: datetime) -> None:
    arm(operator, busy, "needed")
    assert ladder_report(busy).drift is not None
    assert ladder_report(busy).drift.reasons == ()  # type: ignore[union-attr]
    query = Query.objects.get(name="low")
    set_shedding(operator, query, weight=5.0)
    placed(operator, busy, {"more": ["s3"]})
    measured(busy, now + timedelta(seconds=1), loads=[100.0] * 4, busy=[0.5] * 4)
    measured(busy, now + timedelta(seconds=2), loads=[100.0] * 4, busy=[0.5] * 4)
    later = now + timedelta(minutes=2)
    arrived(busy, later, {"s0": [300.0] * 12, "s1": [900.0] * 12, "s2": [200.0] * 12})
    drift = ladder_report(busy).drift
    assert drift is not None
    assert {reason.code for reason in drift.reasons} >= {
        StaleCode.WEIGHTS, StaleCode.QUERIES, StaleCode.RATES,
    }  # fmt: skip
    assert drift.mix == pytest.approx(0.9 / 1.4 - 1 / 6, abs=0.01)


def test_weights_and_floors_are_checked_and_recorded(operator: Actor, busy: Cluster) -> None:
    query = set_shedding(operator, Query.objects.get(name="both"), 2.5, 0.25, "revenue")
    assert (query.shedding_weight, query.shedding_floor) == (2.5, 0.25)
    entry = AuditEntry.objects.get(action="query.shedding")
    assert (entry.after, entry.reason) == (
        {"shedding_weight": 2.5, "shedding_floor": 0.25}, "revenue",
    )  # fmt: skip
