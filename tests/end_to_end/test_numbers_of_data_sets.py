"""Laws of numbers on other data: web requests in a rush hour, and packets, with a drop level."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv
import pytest
from playwright.sync_api import BrowserContext, Page

from tests.end_to_end.data_sets import packets
from tests.end_to_end.test_data_sets import CLUSTER, post, read, token
from tests.end_to_end.test_numbers import MINUTE
from tests.support.number_laws import NumberLaws, assert_parts_add_up
from tests.support.running_weir import RunningWeir

pytestmark = [
    pytest.mark.browser,
    pytest.mark.spark,
    pytest.mark.nightly("operator"),
]

PATIENCE_S: Final = 400.0
# Packets per second, and the factor of their rush hour.
RATE: Final = 60
RUSH: Final = 3
WHY: Final = {"reason": "laws of numbers"}


@pytest.fixture(scope="module")
def weir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWeir]:
    """Weir with the demonstration `web` alone."""
    running = RunningWeir(tmp_path_factory.mktemp("weir") / "data", {"WEIR_DEMO": CLUSTER})
    running.start()
    yield running
    running.end()


class Producer:
    """Sends the packets of a network again and again, as if they were seen now."""

    def __init__(self, page: Page) -> None:
        self.page, self.rate = page, RATE
        self.records, self.sent = packets().records, 0
        self.at = time.monotonic()

    def send(self) -> None:
        """Send the packets that are due, of some seconds at most."""
        now = time.monotonic()
        count = int(min(now - self.at, 5.0) * self.rate)
        if not count:
            return
        self.at = now
        part = self.records.slice(self.sent % (self.records.num_rows - 5 * RUSH * RATE), count)
        self.sent += count
        seen = pa.array([datetime.now(UTC)] * count, pa.timestamp("us", tz="UTC"))
        sink = pa.BufferOutputStream()
        pyarrow.csv.write_csv(part.set_column(0, "seen_at", seen), sink)
        answer = self.page.request.post(
            f"/api/v1/clusters/{CLUSTER}/streams/packets/records",
            data=sink.getvalue().to_pybytes(),
            headers={**token(self.page), "Content-Type": "text/csv"},
        )
        assert answer.status == 201, answer.text()

    def until(self, find: Callable[[], Any]) -> Any:
        """Send packets until something is found; return it."""
        deadline = time.monotonic() + PATIENCE_S
        while not (found := find()):
            assert time.monotonic() < deadline
            self.send()
            time.sleep(0.5)
        return found


@pytest.fixture(scope="module")
def producer(session: BrowserContext) -> Iterator[Producer]:
    """Packets beside the web requests, read by their queries."""
    page, one = session.new_page(), packets()
    page.goto("/")
    post(page, "streams", {"streams": [{"name": one.name, "schema": one.schema}]})
    post(page, "queries/bulk", {"queries": one.bodies()})
    producer = Producer(page)
    producer.until(lambda: all(_state(page, name) == "running" for name in one.queries))
    yield producer
    page.close()


def _state(page: Page, query: str) -> str:
    state: str = read(page, f"queries/{query}")["state"]
    return state


@pytest.fixture(scope="module")
def rush_hour(producer: Producer) -> Iterator[Producer]:
    """Three times the records of both data sets, of which a drop level drops some."""
    page, since = producer.page, time.monotonic()
    # Costs are measured over batches of which some do not belong to the start.
    producer.until(lambda: time.monotonic() - since > 90)
    post(page, "scenarios/rush_hour", {"minutes": 30})
    producer.rate = RUSH * RATE
    post(page, "shedding/arm", WHY)
    post(page, "shedding/activate", {"rung": 1, "minutes": 30, **WHY})
    producer.until(lambda: (read(page, "sample") or {}).get("kept") not in (None, 1.0))
    yield producer
    post(page, "shedding/disarm", WHY)


@pytest.fixture
def laws(rush_hour: Producer) -> NumberLaws:
    def text(path: str) -> str:
        rush_hour.send()
        answer = rush_hour.page.request.get(path)
        assert answer.ok, (path, answer.status)
        return answer.text()

    return NumberLaws(text, CLUSTER)


def test_the_parts_of_each_batch_add_up(rush_hour: Producer, laws: NumberLaws) -> None:
    begin = datetime.now(UTC)
    rush_hour.until(lambda: datetime.now(UTC) - begin > MINUTE)
    samples = laws.samples(begin, datetime.now(UTC))
    assert_parts_add_up(samples)
    assert any(sample["dropped"] for sample in samples)


def test_the_newest_sample_is_the_same_everywhere(rush_hour: Producer, laws: NumberLaws) -> None:
    rush_hour.until(laws.assert_newest_sample_is_the_same)


def test_a_past_window_has_one_value_on_every_page(rush_hour: Producer, laws: NumberLaws) -> None:
    end = rush_hour.until(laws.complete_minutes)[0]
    laws.assert_window_has_one_value(end - MINUTE, end)


def test_the_fleet_has_the_values_of_the_tiles(rush_hour: Producer, laws: NumberLaws) -> None:
    different = laws.differences()

    def are_equal() -> bool:
        different.intersection_update(laws.differences())
        return not different

    rush_hour.until(are_equal)


def test_alerts_fire_beyond_their_own_limits_only(laws: NumberLaws) -> None:
    laws.assert_alerts_fire_beyond_their_limits()
