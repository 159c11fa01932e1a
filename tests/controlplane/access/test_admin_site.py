"""Django's admin goes around no service: rows of Weir are read-only, accounts are recorded."""

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.core.management import call_command
from django.test import Client, RequestFactory
from django.urls import reverse

from controlplane.admin import AuditedAdmin, ReadOnly
from controlplane.models import AuditEntry, Cluster, Node
from tests.support.cluster import confirmed

pytestmark = pytest.mark.django_db


@pytest.fixture
def root(db: None) -> User:
    return User.objects.create_superuser("root", password="x" * 12)


@pytest.fixture
def browser(root: User, redis_url: str) -> Client:
    client = Client()
    client.force_login(root)
    return confirmed(client)


def form_of(user: User, **changed: Any) -> dict[str, Any]:
    joined = user.date_joined
    values = {
        "username": user.username, "is_active": "on", "is_staff": "on", "is_superuser": "on",
        "date_joined_0": f"{joined:%Y-%m-%d}", "date_joined_1": f"{joined:%H:%M:%S}",
    } | changed  # fmt: skip
    return {name: value for name, value in values.items() if value}


def test_every_registered_model_is_read_only_or_recorded(root: User) -> None:
    request: Any = RequestFactory().get("/admin/")
    request.user = root
    recorded = {
        model for model, site in admin.site._registry.items() if isinstance(site, AuditedAdmin)
    }
    assert recorded == {User, Group}
    for model, site in admin.site._registry.items():
        if model in recorded:
            continue
        assert isinstance(site, ReadOnly), model
        inlines = [kind(model, admin.site) for kind in site.inlines]
        for shown in (site, *inlines):
            for verb in ("add", "change", "delete"):
                allowed: Any = getattr(shown, f"has_{verb}_permission")
                assert not allowed(request, None), (model, verb)


def test_a_cluster_cannot_be_changed_in_the_admin(browser: Client) -> None:
    cluster = Cluster.objects.create(slug="sf", name="SF")
    Node.objects.create(cluster=cluster, index=0, name="node 0", capacity=500)
    page = reverse("admin:controlplane_cluster_change", args=[cluster.pk])
    assert browser.get(page).status_code == 200
    for path in (page, reverse("admin:controlplane_cluster_add"), page.replace("change", "delete")):
        assert browser.post(path, {"name": "another", "desired": "running"}).status_code == 403
    cluster.refresh_from_db()
    assert (cluster.name, cluster.desired) == ("SF", "stopped")


def test_changes_of_users_are_recorded(browser: Client, root: User) -> None:
    eve = User.objects.create_user("eve")
    group = Group.objects.get_or_create(name="admin")[0]
    page = reverse("admin:auth_user_change", args=[eve.pk])
    sent = browser.post(page, form_of(eve, is_superuser="", is_staff="", groups=[group.pk]))
    assert sent.status_code == 302
    entry = AuditEntry.objects.get(action="user.change")
    assert (entry.actor, entry.object, entry.after["groups"]) == ("root", "user eve", ["admin"])
    assert entry.address == "127.0.0.1"


def test_the_last_admin_stays_one(browser: Client, root: User) -> None:
    page = reverse("admin:auth_user_change", args=[root.pk])
    for changed in ({"is_superuser": ""}, {"is_active": ""}):
        refused = browser.post(page, form_of(root, **changed))
        assert refused.status_code == 200
        assert refused.context["adminform"].form.has_error("__all__", "last_admin")
    deleted = browser.post(reverse("admin:auth_user_delete", args=[root.pk]), {"post": "yes"})
    assert deleted.status_code == 403
    User.objects.create_superuser("second")
    assert browser.post(page, form_of(root, is_superuser="")).status_code == 302


def test_groups_that_are_roles_keep_their_names(browser: Client) -> None:
    group = Group.objects.get_or_create(name="operator")[0]
    browser.post(reverse("admin:auth_group_change", args=[group.pk]), {"name": "others"})
    group.refresh_from_db()
    assert group.name == "operator"
    deleted = browser.post(reverse("admin:auth_group_delete", args=[group.pk]), {"post": "yes"})
    assert deleted.status_code == 403


def test_a_password_is_recorded_as_set_by_the_admin(browser: Client) -> None:
    """Of a user, and of a new one."""
    eve, new = User.objects.create_user("eve", password="y" * 12), "a heron by the weirs"
    form = {"password1": new, "password2": new, "usable_password": "true"}
    page = reverse("admin:auth_user_password_change", args=[eve.pk])
    assert browser.post(page, form).status_code == 302
    assert Client().login(username="eve", password=new)
    added = browser.post(reverse("admin:auth_user_add"), form | {"username": "ann"})
    assert added.status_code == 302
    set_by = AuditEntry.objects.filter(action="password.change").values_list("actor", "object")
    assert set(set_by) == {("root", "user eve"), ("root", "user ann")}


def test_users_of_commands_are_recorded_as_those_whom_an_admin_adds(browser: Client) -> None:
    """Each once, with what its roles depend on."""
    call_command("createsuperuser", username="ada", email="", interactive=False)
    User.objects.create_user("eve", password="y" * 12)
    new = "a heron by the weirs"
    form = {"username": "ann", "password1": new, "password2": new, "usable_password": "true"}
    assert browser.post(reverse("admin:auth_user_add"), form).status_code == 302
    added = AuditEntry.objects.filter(action="user.add").exclude(object="user root")
    rows = {entry.object: (entry.actor, entry.after) for entry in added}
    assert added.count() == len(rows)
    plain = {"is_active": True, "is_staff": False, "is_superuser": False, "groups": []}
    everything = plain | {"is_staff": True, "is_superuser": True}
    assert rows == {
        "user ada": ("weir", everything), "user eve": ("weir", plain), "user ann": ("root", plain),
    }  # fmt: skip


def test_nothing_of_users_changes_without_a_confirmation(root: User, redis_url: str) -> None:
    """Whatever the form of Django's admin is; its pages can be read."""
    eve, new = User.objects.create_user("eve", password="y" * 12), "a heron by the weirs"
    Group.objects.get_or_create(name="admin")
    client = Client()
    client.force_login(root)
    before = User.objects.values_list("password", "is_superuser")
    forms = {
        reverse("admin:auth_user_change", args=[eve.pk]): form_of(eve, groups=["1"]),
        reverse("admin:auth_user_password_change", args=[eve.pk]): {
            "password1": new, "password2": new, "usable_password": "true",
        },
        reverse("admin:auth_user_add"): {"username": "ann", "password1": new, "password2": new},
        reverse("admin:auth_user_delete", args=[eve.pk]): {"post": "yes"},
        reverse("admin:auth_group_add"): {"name": "others"},
    }  # fmt: skip
    was = list(before.all())
    for page, form in forms.items():
        assert client.get(page).status_code == 200
        refused = client.post(page, form)
        assert (refused.status_code, b"own_password" in refused.content) == (401, True), page
    assert list(before.all()) == was
    assert not Group.objects.filter(name="others").exists()
    assert client.post(reverse("admin:logout"))["Location"] == "/login/"
