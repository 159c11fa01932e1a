"""The stored forecast of a cluster: computed by the watch loop, read by pages, never stale."""

from datetime import datetime, timedelta

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane.access.roles import Actor
from controlplane.models import Cluster, StoredForecast, Stream
from controlplane.planners.admission import cluster_forecast as forecasts
from controlplane.planners.admission.cluster_forecast import PERIODS, RENEWED, STALE
from controlplane.planners.admission.outlook import outlook_of
from controlplane.planners.admission.split_nodes import split_node_table
from controlplane.planners.admission.stream_report import stream_report
from controlplane.policies.store import policy_of
from controlplane.topology.split_nodes import set_split_capacity
from tests.support.admission import arrived

pytestmark = pytest.mark.django_db


def test_pages_read_the_stored_forecast(
    loaded: Cluster, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Also where the test takes minutes.
    monkeypatch.setattr(forecasts, "STALE", timedelta(hours=1))
    policy = policy_of(loaded)
    assert forecasts.keep_forecast(loaded, policy, now)
    assert not forecasts.keep_forecast(loaded, policy, now + RENEWED / 2)
    stored = StoredForecast.objects.get(cluster=loaded)
    found = forecasts.cluster_forecast(loaded, policy, now + timedelta(seconds=30))
    assert (found.computed_at, found.capacity) == (stored.computed_at, 100.0)
    assert found.expected.shape == (loaded.streams.count(), PERIODS)
    report = stream_report(loaded.streams.get(name="s1"))
    assert report.outlook is not None
    assert report.outlook.others_at == now
    assert report.outlook.left == pytest.approx([60.0] * 12, abs=1)
    assert {row.expected_at for row in split_node_table(loaded)} == {now}
    # The forecast is read, and not computed: none of the other streams' metadata is read.
    with CaptureQueriesContext(connection) as captured:
        split_node_table(loaded)
    assert not [row for row in captured if "characteristics" in row["sql"]]


def test_a_stale_forecast_is_computed_on_demand(
    operator: Actor, loaded: Cluster, now: datetime
) -> None:
    """By its age, after a change of what it depends on, and when records have arrived since."""
    policy = policy_of(loaded)
    first = forecasts.cluster_forecast(loaded, policy, now)
    assert forecasts.cluster_forecast(loaded, policy, now + STALE).computed_at == first.computed_at
    later = now + STALE + timedelta(seconds=1)
    assert forecasts.cluster_forecast(loaded, policy, later).computed_at == later
    set_split_capacity(operator, loaded, 300.0, emulated=False)
    loaded.refresh_from_db()
    assert forecasts.cluster_forecast(loaded, policy, later).capacity == 300.0
    arrived(loaded, now + timedelta(seconds=400), {"s0": [200.0] * 18})
    renewed = forecasts.cluster_forecast(loaded, policy, later)
    s0 = loaded.streams.get(name="s0")
    assert renewed.split_loads({s0.pk: {0: 1.0}})[0] == pytest.approx([200.0] * 3, rel=0.1)


def test_a_redirected_stream_counts_on_its_new_split_node_at_once(loaded: Cluster) -> None:
    before = {row.index: row.expected for row in split_node_table(loaded)}
    assert before == pytest.approx({0: 80.0, 1: 50.0})
    Stream.objects.filter(cluster=loaded, name="s1").update(split=0)
    after = {row.index: row.expected for row in split_node_table(loaded)}
    assert after == pytest.approx({0: 90.0, 1: 40.0})
    outlook = outlook_of(loaded.streams.get(name="s1"))
    assert outlook is not None
    assert outlook.left == pytest.approx([20.0] * 12, abs=1)


def test_the_load_is_that_of_the_time_of_a_period(loaded: Cluster, now: datetime) -> None:
    """Later than the last forecast period, its rates are returned."""
    given = forecasts.cluster_forecast(loaded)
    assert given.starts_at is not None
    rates = np.arange(given.expected.size, dtype=np.float64).reshape(given.expected.shape)
    drawn = forecasts.ClusterForecast(
        now, given.starts_at, given.seconds, 0.0, given.streams, rates, {}
    )
    stream = int(given.streams[0])
    starts = [given.starts_at + timedelta(seconds=10 * k) for k in (0, 5, 17, 40)]
    assert drawn.of(stream, starts).tolist() == [0, 5, 17, 17]
    assert drawn.of(-1, starts).tolist() == [0, 0, 0, 0]
    assert drawn.left_for(stream, {stream: {0: 1.0}}, starts) is None


def test_a_cluster_without_streams_stores_none_and_old_ones_are_deleted(
    loaded: Cluster, now: datetime
) -> None:
    empty = Cluster.objects.create(slug="empty", name="empty")
    assert not forecasts.keep_forecast(empty, policy_of(empty), now)
    forecasts.cluster_forecast(loaded, now=now)
    assert forecasts.prune(now + timedelta(hours=23)) == 0
    assert forecasts.prune(now + timedelta(hours=25)) == 1
