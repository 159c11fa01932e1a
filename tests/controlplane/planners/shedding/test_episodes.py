"""Episodes of load shedding: intervals up to a quiet time, and what they cost together."""

from datetime import datetime, timedelta

import pytest

from controlplane.access.roles import Actor
from controlplane.models import Cluster, Query, SheddingInterval
from controlplane.planners.shedding.episodes import QUIET, episodes
from tests.support.cluster import placed

pytestmark = pytest.mark.django_db(transaction=True)


def test_intervals_up_to_a_quiet_time_are_an_episode(
    operator: Actor, sf: Cluster, now: datetime
) -> None:
    placed(operator, sf, {"q": ["s0"]})
    query, stream = Query.objects.get(name="q"), sf.streams.get(name="s0").pk
    Query.objects.update(placed_at=now - timedelta(hours=3))

    def dropped(before: timedelta, rung: int, records: int) -> SheddingInterval:
        end = now - before
        return SheddingInterval.objects.create(
            cluster=sf, rung=rung, position=rung - 0.5, started_at=end - timedelta(seconds=30),
            ended_at=end, read=1000, dropped=records,
            by_edge=[[stream, query.pk, records]], by_stream=[[stream, 1000]],
        )  # fmt: skip

    third = dropped(timedelta(seconds=10), 1, 50)
    between = timedelta(seconds=40) + QUIET
    second, first = (
        dropped(between + timedelta(seconds=1), 3, 200),
        dropped(between + QUIET, 1, 100),
    )
    late, early = episodes(sf, now - timedelta(hours=1), now, now)
    assert [cost.row for cost in late.intervals] == [third]
    assert [cost.row for cost in early.intervals] == [second, first]
    assert (late.is_over, early.is_over) == (False, True)
    merged = early.cost.row
    assert (merged.rung, merged.position, merged.read, merged.dropped) == (3, 2.5, 2000, 300)
    assert (merged.started_at, merged.ended_at) == (first.started_at, second.ended_at)
    assert merged.by_edge == [[stream, query.pk, 300]]
    assert early.kept == pytest.approx(0.85)
    assert [cost.quality_lost for cost in early.intervals] == pytest.approx([0.2, 0.1])
