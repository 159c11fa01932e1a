"""A cluster's health through API, terminal and page."""

from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client
from django.utils import timezone

from controlplane.models import Cluster, ClusterHealth, DriverRestart, Incident
from controlplane.processes.runtime import checks
from tests.controlplane.api.callers import get, post, scripted, user_of
from tests.support.cluster import actor, small_cluster

pytestmark = pytest.mark.django_db


@pytest.fixture
def looping(db: None) -> Cluster:
    """A cluster whose driver a batch of harbour sensors has ended three times."""
    cluster = small_cluster(actor(name="op"), nodes=2, stream_count=0)
    Cluster.objects.update(state="crash loop", state_detail="batch 812 has ended the driver")
    now = timezone.now()
    ClusterHealth.objects.create(cluster=cluster, observed_at=now, batch=811, unread=9_000)
    for minutes in (1, 2, 3, 90):
        DriverRestart.objects.create(
            cluster=cluster, at=now - timedelta(minutes=minutes), cause="memory", batch=812,
            detail="OutOfMemoryError: Java heap space", exit_code=1, unread=9_000,
        )  # fmt: skip
    return cluster


def test_the_api_tells_restarts_with_cause_and_batch(looping: Cluster) -> None:
    found = get(scripted(actor("viewer")), "/clusters/sf/health").json()
    assert (found["state"], found["restarts_last_hour"]) == ("crash loop", 3)
    assert (found["progress"]["batch"], found["progress"]["unread"]) == (811, 9_000)
    assert [(one["cause"], one["batch"]) for one in found["restarts"]] == [("memory", 812)] * 4
    assert found["incidents"] == []


def test_a_full_disk_is_named_whatever_the_database_says(
    looping: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By API and on every page; a directory that is away is none."""
    monkeypatch.setattr(checks, "FULL_BYTES", 1 << 60)
    monkeypatch.setenv("WEIR_CHECKPOINTS", str(tmp_path / "away"))
    viewer = actor("viewer")
    (told,) = get(scripted(viewer), "/clusters/sf/health").json()["full_disks"]
    assert told["path"] == str(settings.DATA_DIR)
    client = Client()
    client.force_login(user_of(viewer))
    for page in ("/", "/clusters/sf/"):
        assert f"The disk of {told['path']} is full" in client.get(page).content.decode()
    monkeypatch.setattr(checks, "FULL_BYTES", 0)
    assert get(scripted(viewer), "/clusters/sf/health").json()["full_disks"] == []


def test_a_token_reads_while_the_database_takes_no_write(looping: Cluster) -> None:
    """As on a full disk: nobody learns of its cause otherwise."""
    client = scripted(actor("viewer"))
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA query_only = ON")
    try:
        assert get(client, "/clusters/sf/health").status_code == 200
    finally:
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA query_only = OFF")


def test_a_stranger_sees_nothing(looping: Cluster) -> None:
    assert get(scripted(actor("")), "/clusters/sf/health").status_code == 404


def test_the_page_shows_the_loop_with_its_cause(looping: Cluster) -> None:
    client = Client()
    client.force_login(user_of(actor("viewer")))
    page = client.get("/clusters/sf/").content.decode()
    assert "3 restarts in the last hour" in page
    assert "OutOfMemoryError: Java heap space" in page
    assert "at batch 812" in page


@pytest.fixture
def undecided(looping: Cluster) -> Incident:
    """An incident of that cluster about which somebody has to decide."""
    return Incident.objects.create(
        cluster=looping, at=timezone.now(), kind="database-older", state="undecided",
        lost=["Routing versions 8 to 9"], choices=["adopt-database", "stop"], facts={"version": 9},
    )  # fmt: skip


def test_a_decision_takes_an_administrator_and_is_made_once(undecided: Incident) -> None:
    path = f"/clusters/sf/incidents/{undecided.pk}/decide"
    assert post(scripted(actor("approver")), path, {"choice": "stop"}).status_code == 403
    admin = scripted(actor("admin"))
    assert post(admin, path, {"choice": "pray"}).status_code == 422
    found = post(admin, path, {"choice": "stop", "reason": "wrong backup"}).json()
    assert (found["state"], found["decision"]) == ("resolved", "stop")
    assert post(admin, path, {"choice": "stop"}).status_code == 409
    assert get(admin, f"/clusters/sf/incidents/{undecided.pk}").json() == found


def test_the_page_offers_the_choices_to_an_administrator_alone(undecided: Incident) -> None:
    client = Client()
    client.force_login(user_of(actor("viewer")))
    assert 'name="choice"' not in client.get("/clusters/sf/").content.decode()
    url = f"/clusters/sf/incidents/{undecided.pk}/decide/"
    assert client.post(url, {"choice": "stop"}).status_code == 403
    client.force_login(user_of(actor("admin")))
    page = client.get("/clusters/sf/").content.decode()
    assert "Keep the database, discard newer routing" in page
    assert client.get(url).status_code == 405
    assert client.post(url, {"choice": "stop"}).status_code == 302
    undecided.refresh_from_db()
    assert undecided.decision == "stop"
