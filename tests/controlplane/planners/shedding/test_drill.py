"""Drills on recorded rates, against the position that the pipeline would choose."""

from datetime import datetime, timedelta

import pytest

from controlplane.access.roles import Actor
from controlplane.errors import Conflict, Invalid
from controlplane.models import Cluster
from controlplane.planners.shedding.arming import arm
from controlplane.planners.shedding.drill import needed_position, run_drill
from controlplane.wire.routing.compiled_ladder import compiled_ladder
from tests.support.admission import arrived

pytestmark = pytest.mark.django_db(transaction=True)


def test_nothing_is_dropped_below_the_capacity(busy: Cluster, now: datetime) -> None:
    drill = run_drill(busy, now - timedelta(minutes=20), now)
    assert (drill.seconds, drill.dropped, drill.above_s, drill.changes) == (10, 0.0, 0.0, [])
    assert len(drill.points) == pytest.approx(120, abs=1)
    assert all(point.input_per_s == pytest.approx(600) for point in drill.points)
    assert 0 < drill.largest_factor < 1


def test_a_burst_is_dropped_by_the_rungs_that_it_needs(
    operator: Actor, busy: Cluster, now: datetime
) -> None:
    ladder = arm(operator, busy, "needed").value
    rates = {"s0": 2_700.0, "s1": 900.0, "s2": 1_800.0}
    later = now + timedelta(minutes=3)
    quiet = 12
    arrived(
        busy, later,
        {name: [rate] * 6 + [rate / 9] * quiet for name, rate in rates.items()},
    )  # fmt: skip
    drill = run_drill(busy, now - timedelta(minutes=10), later)
    ids = dict(busy.streams.values_list("name", "id"))
    by_id = {ids[name]: rate for name, rate in rates.items()}
    position, factor = needed_position(compiled_ladder(ladder), by_id)
    assert factor > 1
    assert drill.largest_factor == pytest.approx(factor)
    assert max(point.position for point in drill.points) == pytest.approx(position, abs=1e-4)
    assert drill.above_s == 60
    # It steps down after the hold time.
    assert drill.points[-1].position == 0
    held = [point for point in drill.points if point.position > 0]
    assert len(held) >= 6 + ladder.hold_ms // 10_000
    assert 0 < drill.dropped < drill.arrived
    assert 0 < drill.quality_lost < 1
    assert drill.least is not None
    assert drill.changes[-1][1] == 0


def test_impossible_ranges(busy: Cluster, now: datetime) -> None:
    with pytest.raises(Invalid) as invalid:
        run_drill(busy, now, now - timedelta(hours=1))
    assert list(invalid.value.fields) == ["stop"]
    with pytest.raises(Invalid) as invalid:
        run_drill(busy, now - timedelta(days=100), now)
    assert list(invalid.value.fields) == ["start", "stop"]
    with pytest.raises(Conflict) as conflict:
        run_drill(busy, now - timedelta(hours=10), now - timedelta(hours=9))
    assert conflict.value.code == "no_history"
