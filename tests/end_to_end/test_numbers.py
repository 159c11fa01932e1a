"""Laws of numbers on a running cluster: equal words have equal values, and parts add up."""

import csv
import io
import re
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from playwright.sync_api import Page
from prometheus_client.parser import text_string_to_metric_families

from controlplane.alerts.measures import KINDS, AlertMeasure
from controlplane.numbers import with_unit
from controlplane.wire.figures import FIGURES
from tests.end_to_end.mixed_plan import API, post, read

pytestmark = [
    pytest.mark.browser,
    pytest.mark.spark,
    pytest.mark.nightly("operator", by_day=True),
]

Sample = dict[str, Any]
PATIENCE_S: Final = 120.0
WINDOW: Final = timedelta(seconds=60)
# The measures in the row of a cluster of the fleet.
CELL: Final = re.compile(r'<td class="measure" data-label="([^"]*)"><span[^>]*>([^<]*)<')


def near(value: float) -> Any:
    return pytest.approx(value, rel=1e-6, abs=1e-9)


def text_of(page: Page, path: str) -> str:
    """Return what an address answers."""
    answer = page.request.get(path)
    assert answer.ok, (path, answer.status)
    return answer.text()


@pytest.fixture(scope="module", autouse=True)
def dropping(session: Any) -> Iterator[None]:
    """Half of the busiest stream is dropped while the laws are tested."""
    page = session.new_page()
    page.goto("/")
    row = read(page, "streams?order=-rate&limit=1")["streams"][0]
    post(page, f"streams/{row['id']}/drops", {"share": 0.5, "reason": "laws"}, "put")
    deadline = time.monotonic() + PATIENCE_S
    while (read(page, "sample") or {}).get("kept") in (None, 1.0):
        assert time.monotonic() < deadline, "no sample with drops"
        time.sleep(0.5)
    yield
    cookies = {one["name"]: one["value"] for one in page.context.cookies()}
    headers = {"X-CSRFToken": cookies["csrftoken"], "Referer": page.url}
    assert page.request.delete(f"{API}/streams/{row['id']}/drops", headers=headers).ok
    page.close()


def test_the_parts_of_each_batch_add_up(page: Page) -> None:
    """Read, delivered and dropped records of the cluster, its nodes and split nodes."""
    start = (datetime.now(UTC) - WINDOW).isoformat().replace("+00:00", "Z")
    samples = read(page, f"samples?resolution=1&start={start}")
    assert samples
    for sample in samples:
        assert sample["delivered"] == near(sample["read"] * (sample["rf"] or 0.0))
        assert sum(sample["loads"]) == near(sample["delivered"])
        assert sum(sample["split_loads"]) == near(sample["in"])
        kept = 1.0 if sample["kept"] is None else sample["kept"]
        assert kept * sample["in"] + sample["dropped"] == near(sample["in"])
    assert any(sample["dropped"] for sample in samples)


def test_the_newest_sample_is_the_same_in_api_fleet_and_metrics(page: Page) -> None:
    """Under the names, in the units and with the indices of each."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        before, text = read(page, "sample"), text_of(page, "/metrics")
        fleet, after = page.request.get("/api/v1/fleet").json(), read(page, "sample")
        if before["t"] == after["t"]:
            break
        assert time.monotonic() < deadline, "each answer has another sample"
    (row,) = (row for row in fleet if row["slug"] == "sf")
    assert row["sample"] == before
    known = metrics_of(text)
    for figure in FIGURES:
        if not figure.metric:
            continue
        values = before[figure.name] if figure.per else [before[figure.name]]
        expected = {
            (f"weir_{figure.metric}", str(index) if figure.per else ""): near(
                value * figure.metric_factor
            )
            for index, value in enumerate(values)
            if value is not None
        }
        assert {key: known.get(key) for key in expected} == expected


def metrics_of(text: str) -> dict[tuple[str, str], float]:
    """Return the metrics of the demo cluster by name and node or split node."""
    return {
        (one.name, one.labels.get("node", one.labels.get("split_node", ""))): one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
        if one.labels.get("cluster") == "sf"
    }


def test_a_past_window_has_one_value_on_every_page(page: Page) -> None:
    """Tiles and table of the cluster, tiles of its nodes and explanations, from the samples."""
    # Of ten seconds that are complete, with all that the relay stores late.
    end = datetime.fromtimestamp(int(time.time() - 20) // 10 * 10, UTC)
    start = end - WINDOW
    ends = [round(1000 * moment.timestamp()) for moment in (start, end)]
    samples = between(page, start, end)
    html = text_of(page, f"/clusters/sf/?from={ends[0]}&to={ends[1]}")
    arrived, read_, taken = (mean(samples, name) for name in ("arrived", "read", "in"))
    expected = {
        "records_in": arrived,
        "replication_factor": mean(samples, "delivered") / read_,
        "input_kept": 1 - mean(samples, "dropped") / taken,
        "latency_p95": mean(samples, "p95"),
    }
    for name, value in expected.items():
        number, unit = tile_of(html, name)
        assert (number, unit) == with_unit(value, KINDS[AlertMeasure(name)].unit), name
        finding = explained(page, f"measure:{name}", ends[1])["finding"]
        assert finding["value"] == near(value), name
    table = text_of(page, f"/clusters/sf/nodes.csv?from={ends[0]}&to={ends[1]}")
    rows = list(csv.DictReader(io.StringIO(table)))
    loads = [float(row["load_deliveries_per_s"]) for row in rows]
    assert sum(loads) == near(mean(samples, "delivered") * arrived / taken)
    for row, load in zip(rows, loads, strict=True):
        facts = explained(page, f"node:{row['node']}", ends[1])["facts"]
        assert next(fact["value"] for fact in facts if fact["name"] == "load") == near(load)
        node = text_of(page, f"/clusters/sf/nodes/{row['node']}/?from={ends[0]}&to={ends[1]}")
        assert tile_of(node, "load") == with_unit(load, "deliveries/s")


def between(page: Page, start: datetime, end: datetime) -> list[Sample]:
    """Return the samples of a window, all of whose values are known."""
    times = [moment.isoformat().replace("+00:00", "Z") for moment in (start, end)]
    samples: list[Sample] = read(page, f"samples?resolution=1&start={times[0]}&end={times[1]}")
    assert samples
    for name in ("arrived", "p95", "rf", "kept"):
        assert all(sample[name] is not None for sample in samples), name
    return samples


def mean(samples: Sequence[Sample], name: str) -> float:
    """Return a value over the window."""
    seconds = sum(sample["span_s"] for sample in samples)
    total: float = sum(sample[name] * sample["span_s"] for sample in samples)
    return total / seconds


def explained(page: Page, subject: str, time_ms: int) -> Any:
    """Return the explanation of a subject at a time."""
    return read(page, f"explanations/{subject}@{time_ms}")


def tile_of(html: str, name: str) -> tuple[str, str]:
    """Return number and unit of a tile of a page."""
    pattern = rf'data-measure="{name}".*?<span class="value[^"]*">([^<]*)<small>([^<]*)</small>'
    found = re.search(pattern, html, re.DOTALL)
    assert found is not None, name
    return found[1], found[2]


def test_the_fleet_has_the_values_of_the_tiles(page: Page) -> None:
    """Both show means of five minutes until now, which change from second to second."""
    equal, shown = set[str](), {"?"}
    deadline = time.monotonic() + PATIENCE_S
    while equal != shown:
        assert time.monotonic() < deadline, shown - equal
        fleet, cluster = text_of(page, "/"), text_of(page, "/clusters/sf/")
        cells = dict(CELL.findall(fleet[fleet.index('id="row-sf"') :]))
        shown = {kind.measure for kind in KINDS.values() if kind.title in cells}
        assert len(shown) > 1
        equal |= {
            measure
            for measure in shown
            if squeezed(cells[KINDS[measure].title]) == squeezed("".join(tile_of(cluster, measure)))
        }


def squeezed(text: str) -> str:
    return text.replace(" ", "")


def test_alerts_fire_beyond_their_own_limits_only(page: Page) -> None:
    """What is within its limit again recovers."""
    for alert in page.request.get("/api/v1/alerts?state=firing").json()["alerts"]:
        if alert["subject"] in {str(measure) for measure in KINDS}:
            kind = KINDS[AlertMeasure(alert["subject"])]
            assert kind.exceeds(alert["value"], alert["limit"]), alert
