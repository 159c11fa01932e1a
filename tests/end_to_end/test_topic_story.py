"""From a team's own topic to a table and a topic of results, on a whole Weir, by pages alone."""

from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial

import pytest
from playwright.sync_api import Page

from tests.support.running_weir import RunningWeir
from tests.support.topic_story import (
    MOST_CLICKS,
    Clicks,
    Places,
    Revenue,
    Shop,
    TopicOfResults,
    add_sinks,
    declare_topic,
    running_places,
    see_results,
    submit_query,
    table_rows,
)
from tests.support.topics import wait_until

pytestmark = [
    pytest.mark.browser,
    pytest.mark.spark,
    pytest.mark.nightly("overload"),
]

# A cluster starts in 20 to 40 s on a quiet machine.
PATIENCE_S = 400
CLUSTER_CLICKS = 2


@pytest.fixture(scope="module")
def places() -> Iterator[Places]:
    with running_places() as running:
        yield running


@pytest.fixture(scope="module")
def weir(tmp_path_factory: pytest.TempPathFactory, places: Places) -> Iterator[RunningWeir]:
    running = RunningWeir(
        tmp_path_factory.mktemp("weir") / "data",
        {"WEIR_DEMO": "0", "WEIR_DESTINATIONS": places.destinations},
    )
    running.start()
    yield running
    running.end()
    assert running.processes() == []


def test_revenue_of_a_topic_arrives_in_a_table_and_a_topic(admin: Page, places: Places) -> None:
    """The messages from before the query count, too, as the topic is read from its start."""
    shop, clicks = Shop(places.broker), Clicks(admin)
    for minute in range(2):
        shop.sell(minute)
    shop.producer.flush()
    create_cluster(clicks)
    declare_topic(clicks, "shop", places)
    submit_query(clicks)
    add_sinks(clicks, places)
    assert clicks.count <= MOST_CLICKS + CLUSTER_CLICKS
    for minute in range(2, 4):
        shop.sell(minute)
    with closing(TopicOfResults(places.broker)) as results:
        for rows in (partial(table_rows, places), results.rows):
            wait_until(partial(has_results, shop, rows), "the results", PATIENCE_S)
    see_results(admin)


def create_cluster(clicks: Clicks) -> None:
    page = clicks.page
    page.goto("/")
    page.locator("body[data-ready]").wait_for(state="attached")
    clicks.button("Create…")
    page.locator("#create-cluster").get_by_label("Name", exact=True).fill("shop")
    clicks.button("Create cluster")
    page.wait_for_url("**/clusters/shop/")


def has_results(shop: Shop, rows: Callable[[], Revenue]) -> bool:
    # What a batch has settled is final with the next one.
    shop.close_windows()
    return rows() == shop.revenue
