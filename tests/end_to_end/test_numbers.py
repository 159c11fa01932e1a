"""Laws of numbers on a running cluster of which a drop rule drops records."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
from playwright.sync_api import BrowserContext, Page

from tests.end_to_end.mixed_plan import API, post, read
from tests.support.number_laws import NumberLaws, assert_parts_add_up

pytestmark = [
    pytest.mark.browser,
    pytest.mark.spark,
    pytest.mark.nightly("operator", by_day=True),
]

PATIENCE_S: Final = 300.0
MINUTE: Final = timedelta(seconds=60)


@pytest.fixture(scope="module")
def dropping(session: BrowserContext) -> Iterator[Page]:
    """Half of the busiest stream is dropped while the laws are tested."""
    page = session.new_page()
    page.goto("/")
    row = read(page, "streams?order=-rate&limit=1")["streams"][0]
    post(page, f"streams/{row['id']}/drops", {"share": 0.5, "reason": "laws"}, "put")
    eventually(lambda: (read(page, "sample") or {}).get("kept") not in (None, 1.0))
    yield page
    cookies = {one["name"]: one["value"] for one in page.context.cookies()}
    headers = {"X-CSRFToken": cookies["csrftoken"], "Referer": page.url}
    assert page.request.delete(f"{API}/streams/{row['id']}/drops", headers=headers).ok
    page.close()


@pytest.fixture
def laws(dropping: Page) -> NumberLaws:
    def text(path: str) -> str:
        answer = dropping.request.get(path)
        assert answer.ok, (path, answer.status)
        return answer.text()

    return NumberLaws(text)


def eventually(is_so: Callable[[], bool]) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.5)


def test_the_parts_of_each_batch_add_up(laws: NumberLaws) -> None:
    """Read, delivered and dropped records of the cluster, its nodes and split nodes."""
    now = datetime.now(UTC)
    samples = laws.samples(now - MINUTE, now)
    assert samples
    assert_parts_add_up(samples)
    assert any(sample["dropped"] for sample in samples)


def test_the_newest_sample_is_the_same_in_api_fleet_and_metrics(laws: NumberLaws) -> None:
    eventually(laws.assert_newest_sample_is_the_same)


@pytest.mark.nightly("operator")
def test_a_past_window_has_one_value_on_every_page(laws: NumberLaws) -> None:
    """Of whole tens of seconds and batches with records, the newest of the last ten minutes."""
    found: list[datetime] = []

    def is_found() -> bool:
        found.extend(laws.complete_minutes())
        return bool(found)

    eventually(is_found)
    laws.assert_window_has_one_value(found[0] - MINUTE, found[0])


@pytest.mark.nightly("operator")
def test_the_fleet_has_the_values_of_the_tiles(laws: NumberLaws) -> None:
    """Both show means of five minutes until now, which change from second to second."""
    different = laws.differences()

    def are_equal() -> bool:
        different.intersection_update(laws.differences())
        return not different

    eventually(are_equal)


def test_alerts_fire_beyond_their_own_limits_only(laws: NumberLaws) -> None:
    laws.assert_alerts_fire_beyond_their_limits()
