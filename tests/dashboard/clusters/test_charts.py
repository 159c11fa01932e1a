"""What the charts of a cluster answer beside their samples."""

from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client

from controlplane.models import Cluster
from controlplane.telemetry.series import read
from dashboard.clusters.charts import missing_text
from dashboard.figures.buckets import LINES, LOADS, MINUTES, last_minute, line_columns
from dashboard.time_range import time_range_of
from tests.dashboard.conftest import sample
from tests.support.alerting import fleet_cluster
from tests.support.series import add_sample

pytestmark = pytest.mark.nightly("pages")

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
PAST = {"from": "2026-11-20T10:00:00+00:00", "to": "2026-11-20T11:00"}


@pytest.mark.parametrize(
    ("desired", "values", "why"),
    [
        ("running", {"range": "1h"}, "next micro-batch"),
        ("stopped", {"range": "1h"}, "cluster is stopped"),
        ("running", PAST, "are stored"),
        ("stopped", PAST, "are stored"),
    ],
)
def test_charts_without_samples_give_the_reason(
    desired: str, values: dict[str, str], why: str
) -> None:
    assert why in missing_text(Cluster(desired=desired), time_range_of(values, NOW))


@pytest.mark.django_db
def test_the_last_minute_of_the_charts_is_that_of_the_tiles() -> None:
    """Micro-batches of different load and length: the weights are those of the readings."""
    end, cluster = datetime(2026, 11, 20, 12, tzinfo=UTC), fleet_cluster("sf")
    for place in range(90):
        t = end - timedelta(seconds=90 - place)
        values = sample(
            round(1000 * t.timestamp()), p95=500.0 + 40 * place, read=100.0 + 10 * (place % 7),
            rf=1.0 + place / 100, loads=[100.0 + place, 50.0, 20.0, 90.0 - place],
        )  # fmt: skip
        add_sample(cluster, t, values)
    series = read(cluster, (*LINES, *LOADS), end - timedelta(minutes=5), end, 1)
    minute = series.window_of(end - timedelta(seconds=60), end)
    columns = line_columns(series, 1)
    for name in MINUTES:
        assert columns[f"minute_{name}"][-1] == pytest.approx(minute[name][0], rel=1e-3)
    assert columns["p95"][-1] != columns["minute_p95"][-1]
    assert [row["t"] for row in last_minute(series)] == columns["t"][-60:]


def test_samples_of_a_minute_or_more_have_no_means_of_a_minute(
    viewing: Client, sf: Cluster
) -> None:
    """They would be the same lines twice, and live ones would be those of another period."""
    for name, has in (("1h", True), ("7d", False)):
        charts = viewing.get(f"/clusters/sf/charts.json?range={name}").json()
        drawn = [trace["meta"] for f in charts["figures"].values() for trace in f["data"]]
        named = {meta["field"] for meta in drawn if "field" in meta}
        assert named <= charts["columns"].keys()
        assert {end for meta in drawn for end in meta.get("ends", ())} <= named
        assert any(name.startswith("minute_") for name in charts["columns"]) is has
