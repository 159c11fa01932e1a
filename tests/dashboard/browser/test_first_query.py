"""From a sample to results in a real browser: declare, preview, submit, follow the windows."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
import redis
from django.db import connections
from playwright.sync_api import Page, expect

from controlplane.models import Cluster, Stream
from controlplane.topology import placement
from controlplane.wire.producer import Producer
from controlplane.wire.schema import StreamSchema
from tests.dashboard.browser.conftest import apart, log_in
from tests.support import cluster as made
from tests.support.pipeline import Pipeline
from tests.support.previews import answer_at_once
from tests.support.whole_results import VARIABLE
from workers.preview import service

pytestmark = pytest.mark.browser
ROWS = [{"at": f"2026-01-01T12:0{n}:00Z", "shop": "north", "amount": 10.5 + n} for n in range(3)]
SAMPLE = "at,shop,amount\n" + "\n".join(f"{r['at']},{r['shop']},{r['amount']}" for r in ROWS)


@pytest.fixture
def cluster(web: str, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """A cluster without streams; previews are computed in the process of the test."""
    answer_at_once(monkeypatch)
    monkeypatch.setattr(service, "run_in_child", lambda compute, *_: compute(lambda _: None))
    return apart(lambda: made.small_cluster(made.actor("operator"), stream_count=0))


@pytest.fixture
def pipeline(
    redis_url: str, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Pipeline]:
    """The data plane, called batch by batch, with the results that the pages read."""
    file = connections["results"].settings_dict["NAME"]
    monkeypatch.setenv(VARIABLE, f"sqlite:///{file}")
    with redis.Redis.from_url(redis_url) as client:
        yield Pipeline(client, redis_url, "sf", nodes=4, splits=2)


def test_a_sample_becomes_a_stream_a_preview_and_results(
    page: Page, web: str, cluster: Cluster, pipeline: Pipeline, redis_url: str, tmp_path: Path
) -> None:
    sample = tmp_path / "sales.csv"
    sample.write_text(SAMPLE)
    log_in(page, web, "a-operator")
    page.goto("/clusters/sf/streams/new/")
    page.locator("#sample").set_input_files(sample)
    page.get_by_role("button", name="Propose columns").first.click()
    page.locator("#stream").fill("sales")
    page.get_by_role("button", name="Declare the stream").click()
    page.wait_for_url("**/streams/*/")
    apart(lambda: _append(redis_url))

    page.get_by_role("link", name="New query").click()
    page.locator("body[data-ready]").wait_for(state="attached")
    page.get_by_label("Name", exact=True).fill("sums")
    page.locator("#key").fill("sh")
    page.get_by_role("option", name="shop").click()
    page.locator("#aggregates").fill("total = sum(amou")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.keyboard.type(")")
    expect(page.locator("#aggregates")).to_have_value("total = sum(amount)")
    expect(page.locator("#outcome li")).to_have_text(["shop text, key", "total float"])
    page.get_by_role("button", name="Preview", exact=True).click()
    expect(page.locator("#preview tbody tr")).to_have_count(3)
    expect(page.locator("#preview tbody tr").first).to_contain_text("12.5")
    page.get_by_role("button", name="Explain").click()
    expect(page.locator("#explanation")).to_contain_text("Expected state")

    page.get_by_role("button", name="Submit query").click()
    page.wait_for_url("**/queries/*/")
    apart(lambda: placement.place_pending(cluster.pk))
    # In this thread: the engine limits the time of a query by signals.
    pipeline.batch()
    page.reload()
    expect(page.locator("#results tbody tr")).to_have_count(3)
    expect(page.locator("#results tbody tr").first).to_contain_text("12.5")


def _append(url: str) -> None:
    stream = Stream.objects.get(name="sales")
    schema = StreamSchema.from_json(stream.schema)
    with Producer(url, "sf") as producer:
        producer.append({stream.pk: [_typed(row) for row in ROWS]}, schemas={stream.pk: schema})


def _typed(row: dict[str, object]) -> dict[str, object]:
    return row | {"at": datetime.fromisoformat(str(row["at"]))}
