"""GET /metrics: who may ask, and that the figures are those of the site."""

import os
import struct
import subprocess
import sys
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from controlplane.access.roles import Actor
from controlplane.models import Cluster
from controlplane.processes.serving import request_metrics
from tests.controlplane.api.callers import get, granted, scripted
from tests.deployment.test_files import unknown_metrics
from tests.support.alerting import firing
from tests.support.cluster import placed, submit
from tests.support.series import add_sample

pytestmark = pytest.mark.django_db(transaction=True)
Found = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def read(client: Client) -> Found:
    answer = client.get("/metrics")
    assert answer.status_code == 200
    families = text_string_to_metric_families(answer.content.decode())
    return {
        (one.name, tuple(sorted(one.labels.items()))): one.value
        for family in families
        for one in family.samples
    }


@pytest.fixture
def measured(operator: Actor, sf: Cluster) -> Cluster:
    """Two queries that run, one that waits, one sample ten seconds old."""
    placed(operator, sf, {"a": ["s0"], "b": ["s1"]})
    submit(operator, sf, {"c": ["s2"]})
    moment = timezone.now() - timedelta(seconds=10)
    values = {"imbalance": 0.25, "p95": 1500.0, "arrived": 90.0, "loads": [40.0, 50.0], "rf": None}
    add_sample(sf, moment, values)
    Cluster.objects.update(last_sample_at=moment)
    return sf


def test_late_records_have_counters_by_stream_and_query(measured: Cluster, viewer: Actor) -> None:
    """Where there are some: most of ten thousand queries have none."""
    measured.streams.filter(name="s1").update(late_records=7)
    measured.queries.filter(name="b").update(late_records=5)
    found = read(scripted(viewer))
    late = {place: value for place, value in found.items() if "late_records_total" in place[0]}
    assert late == {
        ("weir_stream_late_records_total", (("cluster", "sf"), ("stream", "s1"))): 7.0,
        ("weir_query_late_records_total", (("cluster", "sf"), ("query", "b"))): 5.0,
    }


def test_open_alerts_have_kind_severity_and_state(measured: Cluster, viewer: Actor) -> None:
    """Those that are not cleared, each with 1."""
    firing(measured, "application")
    firing(measured, "imbalance", acknowledged_at=timezone.now())
    firing(measured, "node_load", state="cleared", cleared_at=timezone.now())
    found = read(scripted(viewer))
    alerts = {tuple(dict(labels).values()) for name, labels in found if name == "weir_alert"}
    assert alerts == {
        ("sf", "application", "critical", "firing"), ("sf", "imbalance", "warning", "acknowledged"),
    }  # fmt: skip


def test_weir_has_every_metric_of_rules_and_dashboards(measured: Cluster, viewer: Actor) -> None:
    assert unknown_metrics(scripted(viewer).get("/metrics").content.decode()) == set()


def test_nobody_known_is_told_nothing(measured: Cluster, client: Client) -> None:
    answer = client.get("/metrics")
    assert (answer.status_code, answer["WWW-Authenticate"]) == (401, "Bearer")
    assert client.post("/metrics").status_code == 405


def test_figures_of_a_cluster_are_those_of_its_rows(measured: Cluster, viewer: Actor) -> None:
    """In seconds and ratios, as Prometheus has it; what is not known is left out."""
    found, sf = read(scripted(viewer)), (("cluster", "sf"),)
    assert found["weir_imbalance", sf] == 0.25
    assert found["weir_latency_p95_seconds", sf] == 1.5
    assert found["weir_records_in_per_second", sf] == 90.0
    assert found["weir_node_deliveries_per_second", (("cluster", "sf"), ("node", "1"))] == 50.0
    assert ("weir_replication_factor", sf) not in found
    assert 9 <= found["weir_data_age_seconds", sf] <= 60
    assert found["weir_queries", (("cluster", "sf"), ("state", "running"))] == 2
    assert found["weir_queries", (("cluster", "sf"), ("state", "pending"))] == 1
    assert found["weir_redis_up", ()] == 1
    # The placing of c waits for a worker.
    assert found["weir_queue_length", (("queue", "weir"),)] >= 1


def test_requests_are_counted_by_route_and_status(
    measured: Cluster, viewer: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the pattern: names would make a series each."""
    # A test before may have started the server here, and its shared folder is gone.
    monkeypatch.setattr(request_metrics, "_SHARED", "")
    script = scripted(viewer)
    before = read(script)
    for name in ("a", "b", "nowhere"):
        get(script, f"/clusters/sf/queries/{name}")
    after = read(script)
    grown = {
        key: value - before.get(key, 0) for key, value in after.items() if "requests" in key[0]
    }
    by_status: Counter[str] = Counter()
    for (name, labels), value in grown.items():
        if name == "weir_http_requests_total" and "<name>" in dict(labels)["route"]:
            # Other tests have asked other routes of this kind, which have not grown.
            by_status[dict(labels)["status"]] += int(value)
    assert (by_status["200"], by_status["404"]) == (2, 1)


def test_a_viewer_of_one_cluster_is_told_of_that_one(measured: Cluster) -> None:
    """And nothing of what belongs to all."""
    other = Cluster.objects.create(slug="nyc", name="NYC", routing_version=3)
    found = read(scripted(granted("viewer", other)))
    assert {dict(labels)["cluster"] for _, labels in found if "cluster" in dict(labels)} == {"nyc"}
    assert not any("http" in name or "queue" in name for name, _ in found)


def test_the_successor_of_a_process_continues_its_counts(tmp_path: Path) -> None:
    """A file of a process that has ended, and has no successor, is deleted."""
    (tmp_path / "counts").mkdir()
    # No process has such an id.
    (tmp_path / "counts" / "counter_99999999.db").write_bytes(b"")
    count = (
        "from controlplane.processes.serving import request_metrics as m\n"
        "m.prepare_files()\n"
        "m._COUNT.labels('GET', 'x', '200').inc(3)\n"
        "from prometheus_client import CollectorRegistry, generate_latest\n"
        "r = CollectorRegistry(); m.collect_requests(r); print(generate_latest(r).decode())"
    )
    environment = os.environ | {
        "PROMETHEUS_MULTIPROC_DIR": str(tmp_path / "counts"), "WEIR_CHILD": "web-1",
    }  # fmt: skip
    told = [
        subprocess.run(
            [sys.executable, "-c", count],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for _ in range(2)
    ]
    assert 'status="200"} 3.0' in told[0]
    assert 'status="200"} 6.0' in told[1]
    names = {file.name for file in (tmp_path / "counts").iterdir()}
    assert names == {"counter_web-1.db"}


def test_files_that_cannot_be_read_are_deleted(tmp_path: Path) -> None:
    """Each request would fail with such a file."""
    # 100 bytes in use, whose first entry has a key of a million bytes.
    broken = struct.pack("=iii", 100, 0, 1_000_000) + bytes(100)
    for owner in ("web-1", "web-2"):
        (tmp_path / f"counter_{owner}.db").write_bytes(broken)
    (tmp_path / "histogram_web-1.db").write_bytes(struct.pack("=ii", 8, 0) + bytes(100))
    assert request_metrics.remove_unreadable_files(tmp_path, "web-1") == 1
    names = {file.name for file in tmp_path.iterdir()}
    assert names == {"counter_web-2.db", "histogram_web-1.db"}
