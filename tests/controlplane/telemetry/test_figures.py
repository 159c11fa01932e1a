"""A figure has one name from the telemetry row of a micro-batch to the pixel."""

import json
import re
from pathlib import Path

import httpx
import pytest
from django.conf import settings
from django.contrib.auth.models import User

from controlplane.access.roles import Actor
from controlplane.cli.client.api import Api
from controlplane.cli.client.this_process import ThisProcess
from controlplane.cli.commands.watch import events_since, observe
from controlplane.models import Cluster
from controlplane.telemetry.samples import PreviousBatch, sample_of
from controlplane.wire.figures import FIGURES, RollUp, Source, figure_of
from controlplane.wire.foreign.telemetry import row_from
from dashboard.figures.buckets import MINUTES
from dashboard.figures.cluster import ChartLimits, cluster_figures
from tests.dashboard.conftest import sample
from tests.support.series import add_sample
from workers.pipeline.exchange.output import NodeMeasures
from workers.pipeline.reports.telemetry_row import telemetry_row

STORED = (Source.VALUE, Source.PER_SECOND)
BEFORE = PreviousBatch(3000, 1000)


def published(node: int) -> NodeMeasures:
    sources = [
        {
            "split": 0,
            "streams": {"1": 100},
            "bytes": 50,
            "read": 80,
            "start": "1-0",
            "end": "2-0",
            "delayed": {"1": "1-5"},
        }
    ]
    return NodeMeasures(
        node=node, batch=3, version=7, records=60, bytes=100, busy_ms=50.0, tasks=2,
        state_bytes=10, late=node, event_ms=9, arrivals=[[4900, 60]], sources=sources[node:],
        merged_rows=20, merge_ms=10.0,
    )  # fmt: skip


def test_the_data_plane_publishes_every_figure_that_is_not_computed() -> None:
    row = telemetry_row([published(0), published(1)], 5000)
    parts = {"": [row], "node": row["nodes"], "split": row["splits"]}
    for figure in FIGURES:
        rows = parts[figure.per]
        if figure.source is Source.LATENCY:
            rows = [part["latency"] for part in rows]
        assert rows
        assert figure.source is Source.COMPUTED or all(figure.row_key in part for part in rows)
    assert row["read_position"] == "1-5", "of the stream that is read less far than the log"


def test_a_sample_has_every_figure_under_its_name() -> None:
    row = telemetry_row([published(0), published(1)], 5000)
    found = sample_of(row, BEFORE, [500.0, 500.0, 500.0])
    assert set(found) == {figure.name for figure in FIGURES} | {"t", "span_s"}
    assert (found["in"], found["read"], found["delivered"], found["rf"]) == (50, 40, 60, 1.5)
    assert found["loads"] == [30, 30, 0]
    assert found["busy"] == pytest.approx([0.025, 0.025, 0.0])
    assert found["merged"] == [10, 10, 0]
    assert found["merge_busy"] == pytest.approx([0.005, 0.005, 0.0])
    assert (found["tasks"], found["state_bytes"], found["p95"]) == ([2, 2, 0], 20, 100)
    assert (found["node_waiting"], found["node_state"]) == ([0, 0, 0], [10, 10, 0])
    assert found["node_processed"] == [0, 0, 0]
    assert found["node_p95"] == [100, 100, None], "no latency of a node without records"


def test_readers_accept_every_row_of_the_data_plane() -> None:
    """What a row declares is what a reader returns; fields that no reader needs are left out."""
    row = telemetry_row([published(0), published(1)], 5000)
    read = row_from(json.dumps(row).encode())
    assert read.keys() >= {
        figure.row_key for figure in FIGURES if not figure.per and figure.source in STORED
    }
    assert sample_of(read, BEFORE, [500.0]) == sample_of(row, BEFORE, [500.0])
    for name, value in read.items():
        if name not in ("nodes", "splits"):
            assert value == json.loads(json.dumps(row[name])), name


def test_charts_have_the_declared_labels_and_units() -> None:
    made = cluster_figures(ChartLimits(), [])
    drawn = [trace for figure in made.values() for trace in figure["data"]]
    fields = [trace for trace in drawn if "field" in trace.get("meta", {})]
    assert {trace["meta"]["field"] for trace in fields} == {
        "imbalance", "rf", "rf_limit", "p50", "p95", "p99", "arrived", "delivered",
        *(f"minute_{name}" for name in MINUTES),
    }  # fmt: skip
    for trace in fields:
        figure = figure_of(trace["meta"]["field"].removeprefix("minute_"))
        assert trace["name"].startswith(figure.label or figure.title)
    seconds = [trace for trace in made["latency"]["data"] if "field" in trace["meta"]]
    assert {trace["meta"]["scale"] for trace in seconds} == {0.001}
    assert made["latency"]["layout"]["yaxis"]["ticksuffix"] == " s"


@pytest.mark.django_db
def test_the_command_line_prints_labels_and_units(sf: Cluster) -> None:
    here = ThisProcess(Actor(User.objects.create_superuser("operator")))
    api, path = Api(httpx.Client(base_url="http://localhost", transport=here)), "/clusters/sf"
    before = observe(api, path, None)
    values = sample(1000, rf=1.5, imbalance=0.25, p95=1200.0, arrived=65.0)
    add_sample(sf, before.time, values)
    (event,) = events_since(api, path, before, observe(api, path, None))
    text = "records in 65 records/s, replication factor 1.500, imbalance 0.250, p95 1,200 ms"
    assert event["text"] == text


def test_the_browser_merges_samples_as_roll_ups_do() -> None:
    """The module has no access to the declaration: its lists must be the declared ones."""
    text = (Path(settings.BASE_DIR) / "static" / "js" / "samples.js").read_text(encoding="utf-8")
    lists = {name: set(json.loads(names)) for name, names in re.findall(
        r"const (WORST|NEWEST) = new Set\((\[.*?\])\)", text, re.DOTALL)}  # fmt: skip
    (over,) = re.findall(r"const OVER = \{(.*?)\};", text)
    (parts,) = re.findall(r"const PARTS = \{ imbalance: (\[.*?\]) \};", text)
    assert dict(re.findall(r'(\w+): "(\w+)"', over)) == {f.name: f.over for f in FIGURES if f.over}
    assert {"imbalance": tuple(json.loads(parts))} == {f.name: f.parts for f in FIGURES if f.parts}
    assert lists["WORST"] == {f.name for f in FIGURES if f.roll_up is RollUp.MAX}
    assert lists["NEWEST"] == {f.name for f in FIGURES if f.roll_up is RollUp.LAST} | {"t"}
