"""Estimates under random drop rules of random arrivals, from the service to the shown windows.

The service sets the rules, the pipeline drops, the relay stores what was dropped, and a reader has
the estimates. Arrivals have bursts, gaps and ends, keys come and go, and rules begin, change and
end within windows.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

import numpy as np
import pytest

from controlplane.access.roles import Actor
from controlplane.connections import redis_client
from controlplane.models import Cluster, Drop, Query, Stream
from controlplane.queries.spec import QuerySpec
from controlplane.results import edge_periods
from controlplane.results.pages import keyed_windows
from controlplane.results.values import KeyedWindow
from controlplane.topology import drop_rules, placement, queries
from controlplane.topology.drop_rules import DropSpec
from controlplane.wire.producer import Producer
from controlplane.wire.query_text import QueryText
from tests.support.nightly import NIGHTLY
from tests.support.pipeline import Pipeline
from tests.support.schemas import REPORTS
from workers.pipeline.engine.evaluation import drop_rules as record_rules
from workers.pipeline.engine.evaluation.drop_rules import sample_hashes

# By night it takes half an hour.
pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(7_200),
    pytest.mark.nightly("estimates", by_day=True),
]
START: Final = datetime(2026, 5, 1, tzinfo=UTC)
# Seconds of event time of one history, read in so many batches; the next one begins later.
LASTS, BATCHES, APART = 600, 12, 1_800
CARS: Final = 3
# One window of each of six streams is a case.
HISTORIES: Final = 170 if NIGHTLY else 2
# What the queries do not read.
PLACE: Final = {"x": 0, "y": 0}
VALUES: Final = {
    "n": "count(*)", "total": "sum(speed)", "of": "count(speed)", "spread": "variance(speed)",
}  # fmt: skip


class Report(NamedTuple):
    """A record: seconds since the start of its history."""

    second: float
    car: int
    speed: int


# Queries, and which records they count, under which key.
QUERIES: Final[Sequence[tuple[QueryText, Callable[[Report], bool], bool]]] = (
    (QueryText(VALUES, 300, key=("car",), lateness_s=60), lambda _: True, True),
    (QueryText(VALUES, 120, 40, key=("car",), lateness_s=60), lambda _: True, True),
    (QueryText(VALUES, 100, where="car = 1", lateness_s=60), lambda row: row.car == 1, False),
    (QueryText(VALUES, 240, 60, where="car <> 0", lateness_s=60), lambda row: row.car > 0, False),
    (
        QueryText(VALUES, 60, key=("car",), where="speed > 10", lateness_s=60),
        lambda row: row.speed > 10,
        True,
    ),
    (QueryText(VALUES, 200, lateness_s=60), lambda _: True, False),
)


def arrivals(rng: np.random.Generator) -> list[Report]:
    """Return records in bursts of one car each, and others from a random start to a random end."""
    begin, end = sorted(rng.uniform(0, LASTS, 2))
    steady = int(rng.integers(0, 400))
    times = [rng.uniform(begin, end, steady)]
    cars = [rng.integers(0, CARS, steady)]
    for _ in range(rng.integers(2, 8)):
        size = int(rng.integers(20, 250))
        times.append(rng.uniform(0, LASTS) + rng.exponential(rng.choice([2, 15, 60]), size))
        cars.append(np.full(size, rng.integers(0, CARS)))
    every = zip(np.concatenate(times).tolist(), np.concatenate(cars).tolist(), strict=True)
    return [Report(round(t, 3), car, int(rng.integers(0, 60))) for t, car in every if t < LASTS]


class World:
    """A cluster with a query of each stream, and its pipeline."""

    def __init__(self, by: Actor, cluster: Cluster, url: str) -> None:
        self.by, self.cluster = by, cluster
        self.streams: list[Stream] = list(cluster.streams.order_by("pk"))
        specs = [
            QuerySpec(f"q{index}", (stream.name,), text)
            for index, (stream, (text, _, _)) in enumerate(zip(self.streams, QUERIES, strict=True))
        ]
        queries.submit_many(by, cluster, specs)
        placement.place_pending(cluster.pk)
        self.queries = list(Query.objects.filter(cluster=cluster).order_by("name"))
        self.pipeline = Pipeline(redis_client(), url, cluster.slug, nodes=4, splits=2)
        self.producer = Producer(url, cluster.slug)

    def change_rules(self, rng: np.random.Generator) -> None:
        """Set, change and end rules of some edges."""
        for stream, query in zip(self.streams, self.queries, strict=True):
            for name, chance in (("", 0.3), (query.name, 0.15)):
                if rng.random() >= chance:
                    continue
                if rng.random() < 0.3:
                    self.end_rules(Drop.objects.filter(stream=stream, query__isnull=not name))
                else:
                    share = DropSpec(round(rng.uniform(0.05, 0.9), 2))
                    drop_rules.set_drop(self.by, stream, share, name)

    def end_rules(self, rules: Any) -> None:
        for rule in rules:
            drop_rules.lift(self.by, rule.stream, rule.query.name if rule.query else "")

    def append(self, start: datetime, records: Sequence[Sequence[Report]]) -> None:
        """Append records of each stream, process them as one batch, and store its counts."""
        rows = {
            stream.pk: [
                PLACE
                | {"ts": start + timedelta(seconds=row.second), "car": row.car, "speed": row.speed}
                for row in some
            ]
            for stream, some in zip(self.streams, records, strict=True)
            if some
        }
        self.producer.append(rows, schemas=dict.fromkeys(rows, REPORTS))
        edge_periods.record(self.cluster, [self.pipeline.batch()])


def cases(world: World, number: int) -> Iterator[tuple[bool, bool]]:
    """Yield for a window of each stream whether its interval has the truth, and is one number."""
    rng = np.random.default_rng([37, number])
    start = START + timedelta(seconds=APART * number)
    records = [arrivals(rng) for _ in world.streams]
    for first in np.linspace(0, LASTS, BATCHES, endpoint=False):
        world.change_rules(rng)
        stop = first + LASTS / BATCHES
        world.append(start, [[r for r in some if first <= r.second < stop] for some in records])
    world.end_rules(Drop.objects.filter(stream__cluster=world.cluster))
    for query, some, (text, counts, is_keyed) in zip(world.queries, records, QUERIES, strict=True):
        earliest = start - timedelta(seconds=text.window_s)
        windows = [window for window in keyed_windows(world.cluster, query, 100)
                   if window.start > earliest and window.estimates
                   and window.values["n"] > 1]  # fmt: skip
        if windows:
            window = windows[int(rng.integers(len(windows)))]
            first_s = (window.start - start).total_seconds()
            own = [
                row for row in some
                if first_s <= row.second < first_s + text.window_s and counts(row)
                and (not is_keyed or row.car == window.key["car"])
            ]  # fmt: skip
            yield check(window, own, str(rng.choice(["n", "total"])))


def check(window: KeyedWindow, own: Sequence[Report], name: str) -> tuple[bool, bool]:
    """Return whether the interval of an estimate has the truth, and is wider than a number."""
    truth = len(own) if name == "n" else sum(row.speed for row in own)
    _, low, high = window.estimates[name]
    assert low is not None
    assert high is not None
    return low <= truth <= high, low < high


@pytest.fixture
def same_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Number the blocks of the log in the place of their times, so that every run is the same."""
    numbers: dict[str, int] = {}

    def numbered(stream: int, position: str, records: int) -> Any:
        number = numbers.setdefault(position, len(numbers))
        return sample_hashes(stream, f"{number}-0", records)

    monkeypatch.setattr(record_rules, "sample_hashes", numbered)


def test_intervals_have_the_truth_in_95_of_100_cases(
    operator: Actor,
    sf: Cluster,
    redis_url: str,
    results_in_django: None,
    same_samples: None,
) -> None:
    world = World(operator, sf, redis_url)
    outcomes = [case for number in range(HISTORIES) for case in cases(world, number)]
    covered, count = sum(inside for inside, _ in outcomes), len(outcomes)
    assert all(is_wide for _, is_wide in outcomes)
    assert count > 5 * HISTORIES
    # By day there are few cases: 3 standard deviations of 95 in 100.
    reach = 0.02 if NIGHTLY else 3 * (0.95 * 0.05 / count) ** 0.5
    assert 0.95 - reach <= covered / count <= 0.95 + reach
