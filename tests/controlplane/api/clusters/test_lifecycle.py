"""Clusters are created, changed, described and deleted over the API, by admins alone."""

import json
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from pytest_django import Settings
from redis import Redis

from controlplane.access.roles import Actor
from controlplane.models import Cluster, Execution, Proposal
from controlplane.wire.keys import cluster_prefix
from tests.controlplane.api.callers import JSON, ROOT, get, post, scripted
from tests.support.cluster import placed
from tests.support.execution import begun, scattered, under_way
from workers.agent.fleet import free_slug

pytestmark = pytest.mark.django_db
NEW = {"slug": "orders", "name": "Orders", "slots": 3, "node_capacity": 250.0, "reason": "test"}


@pytest.fixture
def admin(db: None, redis_url: str) -> Client:
    """A client with a token of an admin."""
    return scripted(Actor(User.objects.create_superuser("root")))


def delete(client: Client, slug: str, confirm: str) -> int:
    return client.delete(f"{ROOT}/clusters/{slug}?confirm={confirm}&reason=test").status_code


@pytest.mark.django_db(transaction=True)
def test_a_cluster_is_created_changed_and_deleted(admin: Client, redis_client: Redis) -> None:
    """With its nodes, with an audit entry for each; its slug is free without a checkpoint."""
    assert post(admin, "/clusters", NEW).status_code == 201
    nodes = get(admin, "/clusters/orders/nodes").json()
    assert [row["capacity"] for row in nodes] == [250.0] * 3
    assert post(admin, "/clusters", NEW).json()["code"] == "cluster_exists"
    changed = admin.patch(
        f"{ROOT}/clusters/orders", json.dumps({"name": "All", "nu": 0.2}), content_type=JSON
    )
    assert (changed.json()["name"], changed.json()["nu"]) == ("All", 0.2)
    kept, other = f"{cluster_prefix('orders')}counts", f"{cluster_prefix('ordersx')}counts"
    redis_client.mset({kept: 1, other: 1})
    assert delete(admin, "orders", "orders") == 204
    assert not Cluster.objects.filter(slug="orders").exists()
    assert (redis_client.exists(kept), redis_client.exists(other)) == (0, 1)
    assert post(admin, "/clusters", NEW).json()["code"] == "slug_used"
    entries = get(admin, "/audit").json()["entries"]
    assert [row["action"] for row in entries][:2] == ["cluster.delete", "cluster.change"]
    assert {row["cluster"] for row in entries if row["object"] == "orders"} == {None}
    free_slug("orders")
    assert post(admin, "/clusters", NEW).status_code == 201


def test_a_running_cluster_is_not_deleted(admin: Client, operator: Actor, sf: Cluster) -> None:
    """Nor one whose driver still ends, nor without the slug as confirmation."""
    placed(operator, sf, {"q": ["s0"]})
    for desired, state in (("running", "running"), ("stopped", "running"), ("running", "stopped")):
        Cluster.objects.filter(pk=sf.pk).update(desired=desired, state=state)
        assert delete(admin, "sf", "sf") == 409, (desired, state)
    Cluster.objects.filter(pk=sf.pk).update(desired="stopped", state="stopped")
    assert delete(admin, "sf", "SF") == 409
    assert Cluster.objects.filter(slug="sf").exists()
    assert delete(admin, "sf", "sf") == 204


def test_a_demo_is_not_added_before_its_checkpoint_is_removed(
    admin: Client, operator: Actor, settings: Settings, tmp_path: Path
) -> None:
    """Neither over the API nor by the start of Weir, which does not fail because of it."""
    settings.DEMOS = True
    files = {"password_file": tmp_path / "login", "token_file": tmp_path / "token"}
    assert post(admin, "/demos/sf").status_code < 300
    Cluster.objects.filter(slug="sf").update(desired="stopped", state="stopped")
    assert delete(admin, "sf", "sf") == 204
    assert post(admin, "/demos/sf").json()["code"] == "slug_used"
    call_command("setup_demo", "sf", **files)
    assert not Cluster.objects.exists()
    free_slug("sf")
    call_command("setup_demo", "sf", **files)
    assert Cluster.objects.get().slug == "sf"


def test_a_cluster_with_executions_is_deleted(
    admin: Client, operator: Actor, approver: Actor, sf: Cluster
) -> None:
    """Its steps protect routing versions, and these protect proposals."""
    proposal = begun(approver, scattered(operator, sf))
    assert under_way(proposal) is not None
    Cluster.objects.filter(pk=sf.pk).update(desired="stopped", state="stopped")
    assert delete(admin, "sf", "sf") == 204
    assert not Execution.objects.exists()
    assert not Proposal.objects.exists()


def test_a_description_goes_out_and_in(admin: Client, operator: Actor, sf: Cluster) -> None:
    """What is exported can be applied under another slug; a trial changes nothing."""
    placed(operator, sf, {"q": ["s0"]})
    document = get(admin, "/clusters/sf/description?measures=false").json()
    document["cluster"]["slug"] = "copy"
    trial = post(admin, "/descriptions", document).json()
    assert (trial["new"], trial["applied"]) == (True, False)
    assert not Cluster.objects.filter(slug="copy").exists()
    assert post(admin, "/descriptions?apply=true", document).json()["applied"]
    assert get(admin, "/clusters/copy/queries/q").status_code == 200
    refused = post(admin, "/descriptions", document | {"misspelt": 1})
    assert refused.status_code == 422
    assert any("misspelt" in place for place in refused.json()["fields"])
