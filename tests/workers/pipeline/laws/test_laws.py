"""Laws of the data plane, over random lives of a cluster on data that no demonstration has.

A window that is final never changes, and has all records that it accepts. A reader sees one set of
windows at any moment: none twice, none missing. Four lives by day, a hundred by night.
"""

from collections.abc import Iterator

import pytest
import redis

from controlplane.results import finality
from tests.support import cluster as made
from tests.support.nightly import NIGHTLY
from tests.workers.pipeline.laws.life import Life

LIVES = 100 if NIGHTLY else 4
STEPS = 40


@pytest.fixture(autouse=True)
def forgetful() -> Iterator[None]:
    """As in a process that has just begun."""
    finality._timings.clear()
    yield
    finality._timings.clear()


@pytest.mark.nightly("schedules", by_day=True)
@pytest.mark.parametrize("seed", range(LIVES))
def test_windows_are_what_the_records_say_at_any_moment(
    db: None,
    redis_url: str,
    results_in_django: None,
    redis_client: "redis.Redis",
    seed: int,
    caplog: pytest.LogCaptureFixture,
) -> None:
    actor = made.actor("operator")
    life = Life(redis_client, redis_url, actor, made.small_cluster(actor, stream_count=0), seed)
    for _ in range(STEPS):
        life.step()
    life.finish()
    life.check()
    life.check_completeness()
    life.check_late()
    life.producer.close()
    # A key grouping that cannot route is exact, too: its records go to task 0.
    assert not [row.message for row in caplog.records if row.name == "weir.pipeline"]
