"""The state of a cluster's application in words."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.alerts.measures import AlertMeasure
from controlplane.alerts.readings import cluster_readings, readings_of
from controlplane.connections import redis_client
from controlplane.health.summary import BacklogTrend, backlog_trend, is_idle
from controlplane.models import Cluster, ClusterHealth
from controlplane.wire import keys
from dashboard.clusters.headline import FIRST_FIGURES, backlog_title, state_title
from dashboard.frame.readings import shown_value, tiles_of
from tests.support.cluster import placed, small_cluster
from tests.support.partitions import with_partitions
from tests.support.series import add_measures

NOW = datetime(2026, 5, 3, 10, 0, tzinfo=UTC)
WORDLESS = (Cluster.State.RUNNING, Cluster.State.STOPPED)


@pytest.mark.parametrize("state", [state for state in Cluster.State if state not in WORDLESS])
def test_every_other_state_has_a_title_and_its_detail_is_a_sentence(state: Cluster.State) -> None:
    title, cause = state_title(Cluster(state=state, state_detail="the driver has ended 3 times"))
    assert title
    assert cause.startswith("The driver has ended 3 times.")


def test_a_starting_cluster_has_the_time_of_its_first_figures() -> None:
    assert state_title(Cluster(state="starting"))[1] == FIRST_FIGURES


def behind(**observed: Any) -> Cluster:
    """Return a cluster with a backlog, whose log was observed at `NOW`."""
    cluster = Cluster(state="catching up", state_detail="617 records unread")
    cluster.health = ClusterHealth(**{"observed_at": NOW, "rate": 57.0, "unread": 617} | observed)
    return cluster


def test_a_backlog_that_shrinks_has_the_time_left() -> None:
    cluster = behind(drained_s=70.0)
    what, why = backlog_title(cluster, NOW)
    assert backlog_trend(cluster, NOW) is BacklogTrend.SHRINKS
    assert what.endswith("about 1 min left")
    assert why == "617 records unread."


def test_a_cluster_whose_backlog_grows_does_not_catch_up() -> None:
    cluster = behind(drained_s=None)
    assert backlog_trend(cluster, NOW) is BacklogTrend.GROWS
    assert "catches up" not in backlog_title(cluster, NOW)[0]


@pytest.mark.parametrize("observed", [{"observed_at": NOW - timedelta(minutes=1)}, {"rate": None}])
def test_an_unknown_trend_of_a_backlog_is_not_claimed(observed: dict[str, Any]) -> None:
    for cluster in (behind(drained_s=70.0, **observed), Cluster(state="catching up")):
        assert backlog_trend(cluster, NOW) is BacklogTrend.UNKNOWN


def test_the_page_of_a_cluster_has_the_trend_of_its_backlog(
    operator: Actor, operating: Client
) -> None:
    cluster = small_cluster(operator)
    now = timezone.now()
    Cluster.objects.filter(pk=cluster.pk).update(state="catching up", desired="running")
    ClusterHealth.objects.create(cluster=cluster, observed_at=now, rate=57.0, unread=617)
    assert "cannot keep up" in operating.get("/clusters/sf/").content.decode()
    ClusterHealth.objects.update(drained_s=70.0)
    assert "catching up" in operating.get("/clusters/sf/").content.decode()


def test_the_page_of_a_new_cluster_leads_to_its_first_stream_and_query(
    operator: Actor, operating: Client, viewing: Client
) -> None:
    cluster = small_cluster(operator, stream_count=0)
    declare, submit = "/clusters/sf/streams/new/", "/clusters/sf/queries/new/"
    content = operating.get("/clusters/sf/").content.decode()
    assert f'primary" href="{declare}"' in content
    assert 'primary">Start</button>' not in content
    assert declare not in viewing.get("/clusters/sf/").content.decode()
    cluster.delete()
    cluster = small_cluster(operator)
    assert f'primary" href="{submit}"' in operating.get("/clusters/sf/").content.decode()
    placed(operator, cluster, {"q": ["s0"]})
    content = operating.get("/clusters/sf/").content.decode()
    assert f'primary" href="{submit}"' not in content
    assert 'primary">Start</button>' in content


def test_the_tiles_of_an_idle_cluster_have_what_is_true(operator: Actor) -> None:
    """Nothing arrives, so nothing is measured: no load, and the last latency with its time."""
    cluster, now = small_cluster(operator), timezone.now()
    Cluster.objects.filter(pk=cluster.pk).update(state="running", desired="running")
    ClusterHealth.objects.create(cluster=cluster, observed_at=now, unread=0)
    cluster.refresh_from_db()
    tiles = {tile.title: tile for tile in tiles_of(cluster_readings(cluster))}
    assert tiles["Latency p95"].number == "no data"
    before = now - timedelta(minutes=20)
    add_measures(cluster, before, {"latency_p95": 1_300.0, "records_in": 9.0}, 300)
    tiles = {tile.title: tile for tile in tiles_of(cluster_readings(cluster))}
    texts = {title: (tile.number, tile.unit) for title, tile in tiles.items()}
    assert texts["Records in"] == ("0", "/s")
    assert texts["Fullest node"] == ("0", "%")
    assert texts["Input kept"] == ("100", "%")
    assert texts["Latency p95"] == ("1.3", "s")
    assert tiles["Latency p95"].note.startswith("last value, ")
    notes = [tile.note for tile in tiles.values()]
    assert notes.count("no records") == 1


@pytest.mark.parametrize("unread", [{"batch": 7}, {"unread": 3}])
def test_without_telemetry_a_cluster_that_reads_a_source_is_not_idle(
    operator: Actor, unread: dict[str, int]
) -> None:
    """The log of such a cluster never has unread records; the relay stores nothing."""
    cluster, now = small_cluster(operator), timezone.now()
    Cluster.objects.filter(pk=cluster.pk).update(state="running", desired="running", last_batch=6)
    health = ClusterHealth.objects.create(cluster=cluster, observed_at=now, unread=0, batch=6)
    stream = with_partitions(cluster.streams.get(name="s0"), {0: 9.0})
    cluster = Cluster.objects.get(pk=cluster.pk)
    assert shown_value(cluster_readings(cluster), AlertMeasure.RECORDS) == 0.0
    if "batch" in unread:
        ClusterHealth.objects.filter(pk=health.pk).update(**unread)
    else:
        key, name = keys.sources_key("sf"), str(stream.pk)
        text: Any = redis_client().hget(key, name)
        row = json.loads(text)
        row["partitions"][0] |= unread
        redis_client().hset(key, name, json.dumps(row))
    cluster = Cluster.objects.get(pk=cluster.pk)
    assert not is_idle(cluster, now)
    assert shown_value(cluster_readings(cluster), AlertMeasure.RECORDS) is None


@pytest.mark.parametrize(("second", "seconds", "clock"), [(90, 1, "10:02"), (-600, 300, "09:55")])
def test_the_last_value_has_the_time_of_its_period(
    operator: Actor, second: int, seconds: int, clock: str
) -> None:
    """Periods are even five minutes; the present one ends now."""
    cluster, now = small_cluster(operator), NOW + timedelta(seconds=175)
    measures = {"latency_p95": 1_300.0, "records_in": 9.0}
    add_measures(cluster, NOW + timedelta(seconds=second), measures, seconds)
    latency = tiles_of(readings_of([cluster], now=now)[cluster.pk])[0]
    assert (latency.number, latency.note) == ("1.3", f"last value, {clock}")
