"""Clusters that follow the files of a directory: in sync or not, by whom, since when."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.cluster_spec.apply import apply_description
from controlplane.cluster_spec.following import follow_all
from controlplane.models import AuditEntry, Cluster, FollowedFile
from controlplane.topology import nodes, placement, queries
from tests.controlplane.api.callers import get, scripted, user_of
from tests.support.descriptions import SMALL, small

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]
NOW = timezone.now()


@pytest.fixture
def folder(tmp_path: Path, settings: Any) -> Path:
    settings.DESCRIPTIONS, settings.DESCRIPTIONS_APPLY = str(tmp_path), "0"
    (tmp_path / "pump.yaml").write_text(SMALL)
    return tmp_path


def _compare(at: datetime) -> FollowedFile:
    follow_all(at)
    return FollowedFile.objects.get(name="pump.yaml")


def _change_node(admin: Actor) -> None:
    node = Cluster.objects.get(slug="pump").nodes.get(name="north")
    nodes.configure(admin, node, capacity=70.0)


def test_a_change_by_hand_has_its_author_and_its_time(admin: Actor, folder: Path) -> None:
    """And who changes it back; without changes nothing is compared again for ten minutes."""
    row = _compare(NOW)
    assert (row.state, row.cluster) == ("out of sync", None)
    apply_description(admin, small(), apply=True)
    assert _compare(NOW + timedelta(seconds=30)).state == "synced"
    _change_node(admin)
    row = _compare(later := NOW + timedelta(seconds=60))
    assert (row.state, row.since, row.changed_by) == (
        "out of sync", later, f"{admin.name} (node.change)",
    )  # fmt: skip
    [found] = row.report["differences"]
    assert (found["field"], found["before"], found["after"]) == ("capacity", 70.0, 100.0)
    row = _compare(NOW + timedelta(seconds=90))
    assert (row.since, row.checked_at) == (later, later)
    answer = get(scripted(admin), "/clusters/pump/description/status").json()
    assert (answer["state"], answer["changes"]) == ("out of sync", 1)
    metrics = scripted(admin).get("/metrics").content.decode()
    assert 'weir_description_synced{cluster="pump",file="pump.yaml"} 0.0' in metrics


def test_a_changed_file_is_applied_only_as_the_site_says(
    admin: Actor, folder: Path, settings: Any
) -> None:
    """By the actor `descriptions`: 1 changes and adds, and prune removes as well."""
    apply_description(admin, small(), apply=True)
    _compare(NOW)
    query_d = "- {name: d, streams: ['no'], text: {aggregates: {n: count(*)}}}\n"
    file = SMALL.replace("capacity: 50", "capacity: 75").replace(query_d, "")
    (folder / "pump.yaml").write_text(file)
    row = _compare(NOW + timedelta(seconds=30))
    assert (row.changes, row.changed_by) == (2, "the file")
    settings.DESCRIPTIONS_APPLY = "1"
    row = _compare(NOW + timedelta(minutes=11))
    assert (row.state, row.report["removed"]) == ("out of sync", {"queries": ["d"]})
    entry = AuditEntry.objects.get(action="cluster.apply", actor="descriptions")
    assert entry.reason.startswith("pump.yaml, sha256 ")
    settings.DESCRIPTIONS_APPLY = "prune"
    assert _compare(NOW + timedelta(minutes=22)).state == "synced"
    cluster = Cluster.objects.get(slug="pump")
    assert not cluster.queries.filter(name="d", state__in=("pending", "running")).exists()
    queries.end(admin, cluster, ["a"])
    # Its name is free once it has left the routing table.
    assert _compare(NOW + timedelta(minutes=23)).state == "faulty"
    placement.place_pending(cluster.pk)
    assert _compare(NOW + timedelta(minutes=24)).state == "synced"
    assert cluster.queries.filter(name="a", state__in=("pending", "running")).exists()


def test_faults_have_their_places_and_change_nothing(
    admin: Actor, folder: Path, settings: Any, client: Client
) -> None:
    """On the page of imports, too. A file that is gone, and a setting that is, is forgotten."""
    settings.DESCRIPTIONS_APPLY = "prune"
    apply_description(admin, small(), apply=True)
    _compare(NOW)
    (folder / "pump.yaml").write_text(SMALL.replace("window_s: 10", "window_s: 20"))
    (folder / "mill.json").write_text("{")
    row = _compare(NOW + timedelta(seconds=30))
    assert (row.state, list(row.faults)) == ("faulty", ["queries[2]"])
    assert FollowedFile.objects.get(name="mill.json").state == "faulty"
    assert not AuditEntry.objects.filter(actor="descriptions").exists()
    client.force_login(user_of(admin))
    page = client.get("/import/").content.decode()
    assert "<code>queries[2]</code>" in page
    assert "faulty" in client.get("/clusters/pump/").content.decode()
    (folder / "mill.json").unlink()
    follow_all(NOW + timedelta(seconds=60))
    assert not FollowedFile.objects.filter(name="mill.json").exists()
    settings.DESCRIPTIONS = str(folder / "absent")
    follow_all(NOW + timedelta(seconds=90))
    [row] = FollowedFile.objects.all()
    assert "absent" in row.name
    settings.DESCRIPTIONS = ""
    follow_all(NOW + timedelta(seconds=120))
    assert not FollowedFile.objects.exists()
