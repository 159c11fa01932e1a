"""From a team's own topic to a table and a topic of results, in a real browser, without Spark."""

from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial

import pytest
import redis
from django.db import connections
from django.utils import timezone
from playwright.sync_api import Page

from controlplane.models import Cluster, Sink
from controlplane.results.finality import update_finality
from controlplane.sinks.process import SinkFollower
from controlplane.topology import placement
from tests.dashboard.browser.conftest import apart, log_in
from tests.support import cluster as made
from tests.support.destinations import list_destinations
from tests.support.pipeline import Pipeline
from tests.support.previews import answer_at_once
from tests.support.sinks import run
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
from tests.support.whole_results import VARIABLE
from tests.workers.pipeline.sources.planners import forget_planners
from workers.preview import messages, service

pytestmark = [pytest.mark.browser, pytest.mark.nightly("browser")]
# A broker, a database and a browser on a busy machine.
_PATIENCE_S = 300.0


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> Iterator[Places]:
    with running_places() as running:
        list_destinations(monkeypatch, running.destinations)
        yield running


@pytest.fixture
def cluster(web: str, places: Places, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """A cluster without streams; what a worker does is done in the process of the test."""
    answer_at_once(monkeypatch)
    for module in (messages, service):
        monkeypatch.setattr(module, "run_in_child", lambda compute, *_: compute(lambda _: None))
    return apart(lambda: made.small_cluster(made.actor("admin"), stream_count=0))


@pytest.fixture
def pipeline(
    redis_url: str, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Pipeline]:
    """The data plane, called batch by batch, with the results that the pages read."""
    monkeypatch.setenv(VARIABLE, f"sqlite:///{connections['results'].settings_dict['NAME']}")
    with redis.Redis.from_url(redis_url) as client:
        yield Pipeline(client, redis_url, "sf", nodes=4, splits=2)
    forget_planners()


def test_revenue_of_a_topic_arrives_in_a_table_and_a_topic(
    page: Page, web: str, cluster: Cluster, pipeline: Pipeline, places: Places
) -> None:
    """The messages from before the query count, too, as the topic is read from its start."""
    shop, clicks = Shop(places.broker), Clicks(page)
    for minute in range(2):
        shop.sell(minute)
    shop.producer.flush()
    log_in(page, web, "a-admin")
    page.goto("/clusters/sf/")
    declare_topic(clicks, "sf", places)
    wait_until(
        lambda: not pipeline.batch() and pipeline.offset.get("sources"), "its place", _PATIENCE_S
    )
    submit_query(clicks)
    add_sinks(clicks, places)
    assert clicks.count <= MOST_CLICKS
    apart(lambda: placement.place_pending(cluster.pk))
    for minute in range(2, 4):
        shop.sell(minute)
    sinks = apart(lambda: [SinkFollower(sink.pk) for sink in Sink.objects.all()])
    with closing(TopicOfResults(places.broker)) as results:
        for rows in (partial(table_rows, places), results.rows):
            is_written = partial(_has, shop, pipeline, sinks, rows)
            wait_until(is_written, "the results", _PATIENCE_S)
    see_results(page)


def _has(
    shop: Shop, pipeline: Pipeline, sinks: list[SinkFollower], rows: Callable[[], Revenue]
) -> bool:
    """Return whether a destination has the results of another batch."""
    # What a batch has settled is final with the next one.
    shop.close_windows()
    pipeline.batch()
    apart(partial(_write_final, sinks), _PATIENCE_S)
    return rows() == shop.revenue


def _write_final(sinks: list[SinkFollower]) -> None:
    """Do what beat and the process of sinks do."""
    update_finality(timezone.now())
    for sink in sinks:
        run(sink)
