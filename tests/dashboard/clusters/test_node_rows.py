"""Bars and table of the nodes of a cluster: the window of the tiles."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.alerts.measures import AlertMeasure
from controlplane.alerts.readings import cluster_readings
from controlplane.models import Cluster
from controlplane.telemetry import series
from dashboard.clusters.node_rows import node_bars, node_table
from dashboard.time_range import time_range_of
from tests.support.cluster import small_cluster
from tests.support.watching import measured

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("name", ["30m", "6h", "24h", "30d"])
def test_bars_have_the_loads_of_the_tiles_in_every_range(operator: Actor, name: str) -> None:
    """Also right after a roll-up, whose period began before the window."""
    cluster, end = small_cluster(operator), series.start_of(timezone.now(), 300)
    measured(cluster, end, loads=[90.0, 70.0, 60.0, 50.0])
    series.roll_up(end + timedelta(minutes=1))
    readings = cluster_readings(cluster, end=end)
    table = node_table(cluster, time_range_of({"range": name}, end), readings)
    bars = node_bars(cluster, readings)
    assert [replace(row, queries=0, line=()) for row in table.rows] == bars.rows
    load = readings[AlertMeasure.LOAD]
    assert load.value is not None
    assert [row.share for row in table.rows][load.node or 0] == pytest.approx(load.value)


def test_bars_read_no_queries_and_no_range(operating: Client, sf: Cluster) -> None:
    """They are refreshed every ten seconds."""
    url = f"/clusters/{sf.slug}/node-list/"
    with CaptureQueriesContext(connection) as sent:
        table = operating.get(url, headers={"hx-request": "true", "hx-target": "bars"})
    assert not [query for query in sent if "controlplane_task" in query["sql"]]
    assert [row.share for row in table.context["table"].rows] == pytest.approx([0.9, 0.5, 0.5, 0.5])
