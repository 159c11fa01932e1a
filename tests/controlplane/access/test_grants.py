"""Grants: who may give which role, what is recorded, and that an admin is left."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from controlplane.access import grants
from controlplane.access.grants import GrantFilters
from controlplane.access.roles import Actor
from controlplane.errors import Conflict, Forbidden, Invalid, NotFound
from controlplane.models import AuditEntry, Cluster, Grant
from tests.controlplane.api.callers import get, granted, scripted
from tests.support.cluster import actor

pytestmark = pytest.mark.django_db
JSON = "application/json"


@pytest.fixture
def sf(db: None) -> Cluster:
    return Cluster.objects.create(slug="sf", name="SF")


@pytest.fixture
def eve(db: None) -> User:
    return User.objects.create_user("eve")


def role_of(user: User, cluster: Cluster) -> str:
    return Actor(user).role(cluster.pk)


def test_a_role_is_granted_changed_and_revoked(sf: Cluster, eve: User) -> None:
    admin = actor("admin")
    grants.grant(admin, "eve", "viewer", sf, "on call")
    assert role_of(eve, sf) == "viewer"
    grants.grant(admin, "eve", "approver", sf)
    assert role_of(eve, sf) == "approver"
    (row,) = grants.grants_listing(admin, GrantFilters(user="ev", cluster="sf")).page.rows
    assert (row.user, row.role, row.granted_by) == (eve, "approver", admin.name)
    grants.revoke(admin, "eve", sf, "left")
    assert role_of(eve, sf) == ""
    with pytest.raises(NotFound):
        grants.revoke(admin, "eve", sf)
    entries = AuditEntry.objects.filter(action__startswith="grant.").order_by("pk")
    recorded = entries.values_list("action", "cluster", "reason", "before__role", "after__role")
    assert list(recorded) == [
        ("grant.add", sf.pk, "on call", None, "viewer"),
        ("grant.change", sf.pk, "", "viewer", "approver"),
        ("grant.revoke", sf.pk, "left", "approver", None),
    ]


def test_an_admin_of_a_cluster_grants_on_that_cluster_only(sf: Cluster, eve: User) -> None:
    nyc = Cluster.objects.create(slug="nyc", name="NYC")
    Grant.objects.create(user=eve, cluster=nyc, role="viewer", granted_at="2026-01-01T00:00Z")
    local = granted("admin", sf)
    grants.grant(local, "eve", "operator", sf)
    for where in (nyc, None):
        with pytest.raises(Forbidden):
            grants.grant(local.on(sf), "eve", "viewer", where)
        with pytest.raises(Forbidden):
            grants.revoke(local.on(sf), "eve", where)
    listed = grants.grants_listing(local, GrantFilters()).page.rows
    assert {row.cluster for row in listed} == {sf}
    assert grants.roles_without_grants(local) == ()
    with pytest.raises(Forbidden):
        grants.grants_listing(granted("approver", sf, "other"), GrantFilters())


def test_the_last_admin_cannot_remove_itself(sf: Cluster, eve: User) -> None:
    admin = granted("admin", sf, "root")
    Grant.objects.update(cluster=None)
    admin = Actor(User.objects.get(username="root"), is_confirmed=True)
    for change in (
        lambda: grants.revoke(admin, "root"),
        lambda: grants.grant(admin, "root", "viewer"),
    ):
        with pytest.raises(Conflict) as refused:
            change()
        assert refused.value.code == "last_admin"
    assert Grant.objects.get().role == "admin"
    assert not AuditEntry.objects.exclude(action="user.add").exists()
    grants.grant(admin, "eve", "admin")
    User.objects.filter(pk=eve.pk).update(is_active=False)
    with pytest.raises(Conflict):
        grants.revoke(admin, "root")
    User.objects.filter(pk=eve.pk).update(is_active=True)
    grants.revoke(admin, "root")
    assert Grant.objects.get().user == eve


def test_unknown_users_and_roles_are_refused_at_their_field(sf: Cluster, eve: User) -> None:
    admin = actor("admin")
    for field, (user, role) in {"user": ("nobody", "viewer"), "role": ("eve", "king")}.items():
        with pytest.raises(Invalid) as refused:
            grants.grant(admin, user, role, sf)
        assert list(refused.value.fields) == [field]


def test_grants_by_the_api(sf: Cluster, eve: User, redis_url: str) -> None:
    client = scripted(actor("admin"))

    def send(method: str, path: str, body: Any = None) -> Any:
        return getattr(client, method)(f"/api/v1{path}", body or {}, content_type=JSON)

    changed = send("put", "/clusters/sf/grants/eve", {"role": "operator", "reason": "night"})
    assert changed.status_code == 200
    assert {key: changed.json()[key] for key in ("user", "cluster", "role")} == {
        "user": "eve", "cluster": "sf", "role": "operator",
    }  # fmt: skip
    assert send("put", "/grants/eve", {"role": "viewer"}).json()["cluster"] is None
    body = get(client, "/grants?user=eve").json()
    assert [row["cluster"] for row in body["grants"]] == ["sf", None]
    assert {"user": "a-admin", "role": "admin", "source": "group admin"} in body["without_grants"]
    assert client.delete("/api/v1/grants/eve?reason=x").status_code == 204
    assert client.delete("/api/v1/clusters/sf/grants/eve").status_code == 204
    assert client.delete("/api/v1/grants/eve").status_code == 404
    # A token below admin changes nothing.
    low = scripted(actor("admin", "second"), role="approver")
    refused = low.put("/api/v1/grants/eve", {"role": "viewer"}, content_type=JSON)
    assert refused.status_code == 403


def test_grants_on_the_page(sf: Cluster, eve: User, redis_url: str) -> None:
    admin, client = granted("admin", sf), Client()
    client.force_login(admin.user)  # type: ignore[arg-type]
    form = {"user": "eve", "role": "operator", "cluster": "sf", "reason": "night"}
    assert client.post("/grants/set/", form).status_code == 302
    assert role_of(eve, sf) == "operator"
    page = client.get("/grants/?cluster=sf").content.decode()
    assert ">eve" in page
    assert "all clusters</option>" not in page
    assert client.post("/grants/set/", form | {"cluster": ""}).status_code == 403
    assert client.post("/grants/revoke/", form).status_code == 302
    assert role_of(eve, sf) == ""
