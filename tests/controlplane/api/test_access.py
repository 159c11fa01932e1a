"""Who may what where: roles on one cluster, and tokens that let less than their user may."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.access.audit import record
from controlplane.access.roles import Actor, Automatic
from controlplane.models import ApiToken, AuditEntry, Cluster, Query
from tests.controlplane.api.callers import get, granted, post, scripted, user_of
from tests.support.cluster import actor, confirmed
from tests.support.texts import SUMMARY_JSON

pytestmark = pytest.mark.django_db(transaction=True)
QUERY = {"name": "q", "streams": ["s0"], "text": SUMMARY_JSON}


@pytest.fixture
def other(sf: Cluster) -> Cluster:
    """A second cluster."""
    return Cluster.objects.create(slug="nyc", name="NYC")


def login(actor: Actor) -> Client:
    client = Client()
    client.force_login(user_of(actor))
    return confirmed(client)


def test_a_grant_on_one_cluster_shows_that_one(sf: Cluster, other: Cluster) -> None:
    """In the list, at its address, and nowhere else."""
    guest = scripted(granted("viewer", sf))
    assert [one["slug"] for one in get(guest, "/clusters").json()["clusters"]] == ["sf"]
    assert get(guest, "/clusters/sf").status_code == 200
    assert get(guest, "/clusters/nyc").status_code == 404
    assert get(guest, "/clusters/nyc/queries").status_code == 404


def test_an_operator_of_one_cluster_changes_that_one(sf: Cluster, other: Cluster) -> None:
    """The services ask for the role where the change is."""
    guest = scripted(granted("operator", sf))
    assert post(guest, "/clusters/sf/queries", QUERY).status_code == 201
    assert post(guest, "/clusters/sf/start").status_code == 200
    assert post(guest, "/clusters/nyc/start").status_code == 404
    assert Cluster.objects.get(slug="nyc").desired == "stopped"


def test_a_token_lets_no_more_than_its_role(operator: Actor, sf: Cluster) -> None:
    """The user may submit; this token may look."""
    script = scripted(operator, role="viewer")
    assert get(script, "/clusters/sf/queries").status_code == 200
    assert post(script, "/clusters/sf/queries", QUERY).status_code == 403
    assert not Query.objects.exists()


def test_a_token_lets_no_more_than_its_user_may(viewer: Actor, sf: Cluster) -> None:
    """A ceiling gives nothing."""
    script = scripted(viewer, role="admin")
    assert post(script, "/clusters/sf/queries", QUERY).status_code == 403


def test_a_token_of_one_cluster_opens_no_other(
    operator: Actor, sf: Cluster, other: Cluster
) -> None:
    script = scripted(operator, cluster=sf)
    assert [one["slug"] for one in get(script, "/clusters").json()["clusters"]] == ["sf"]
    assert post(script, "/clusters/sf/queries", QUERY).status_code == 201
    assert get(script, "/clusters/nyc").status_code == 404
    assert get(script, "/attached/jobs").status_code == 403


def test_a_token_is_made_once_listed_and_revoked(operator: Actor, sf: Cluster) -> None:
    """The secret is in one answer alone; each change is in the audit log."""
    browser = login(operator)
    made = post(browser, "/tokens", {"name": "job", "role": "operator", "cluster": "sf"})
    assert made.status_code == 201
    secret, token = made.json()["secret"], made.json()["token"]
    assert (token["role"], token["cluster"], token["hint"]) == ("operator", "sf", secret[-4:])
    assert secret not in get(browser, "/tokens").content.decode()
    script = Client(headers={"authorization": f"Bearer {secret}"})
    assert get(script, "/me").json()["token"]["name"] == "job"
    assert browser.delete(f"/api/v1/tokens/{token['id']}").status_code == 204
    assert get(script, "/me").status_code == 401
    actions = list(AuditEntry.objects.order_by("id").values_list("action", flat=True))
    assert actions[-2:] == ["token.create", "token.revoke"]


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"role": "king"}, "role"),
        ({"days": 0}, "days"),
        ({"days": 367}, "days"),
        ({"name": " "}, "name"),
    ],
)
def test_a_token_without_bounds_is_refused(
    operator: Actor, sf: Cluster, changed: dict[str, object], field: str
) -> None:
    answer = post(login(operator), "/tokens", {"name": "job"} | changed)
    assert (answer.status_code, list(answer.json()["fields"])) == (422, [field])
    assert not ApiToken.objects.exists()


def test_a_token_makes_no_token_and_revokes_itself_alone(operator: Actor, sf: Cluster) -> None:
    """A leaked one cannot make itself live for ever, nor lock others out."""
    script, _ = scripted(operator), scripted(operator)
    mine, others = ApiToken.objects.order_by("pk")
    assert post(script, "/tokens", {"name": "x"}).json()["code"] == "login_needed"
    assert script.delete(f"/api/v1/tokens/{others.pk}").status_code == 403
    assert script.delete(f"/api/v1/tokens/{mine.pk}").status_code == 204


def test_only_an_admin_lists_and_revokes_what_is_anothers(
    operator: Actor, viewer: Actor, sf: Cluster
) -> None:
    script = scripted(viewer)
    token = ApiToken.objects.get()
    assert login(operator).delete(f"/api/v1/tokens/{token.pk}").status_code == 404
    assert get(login(operator), f"/tokens?user={viewer.name}").status_code == 403
    admin = login(actor("admin", "boss"))
    (row,) = get(admin, f"/tokens?user={viewer.name}").json()
    assert (row["id"], row["user"]) == (token.pk, viewer.name)
    assert get(admin, "/tokens?user=nobody").json()["data"]["kind"] == "user"
    page = f"/tokens/?user={viewer.name}"
    assert token.hint.encode() in admin.get(page).content
    revoked = admin.post(f"/tokens/{token.pk}/revoke/", {"user": viewer.name})
    assert (revoked.status_code, revoked.headers["Location"]) == (302, page)
    assert get(script, "/me").status_code == 401
    entry = AuditEntry.objects.filter(action="token.revoke").latest("id")
    assert (entry.actor, entry.before["user"]) == ("boss", viewer.name)


def test_me_tells_roles_where_they_are(sf: Cluster, other: Cluster) -> None:
    """On all clusters none, on one a role; an expiry is told."""
    expires = timezone.now() + timedelta(days=1)
    script = scripted(granted("approver", sf), role="operator", expires_at=expires)
    told = get(script, "/me").json()
    assert (told["role"], told["clusters"]) == ("", {"sf": "operator"})
    assert told["token"]["role"] == "operator"
    assert told["token"]["expires_at"] is not None


def test_the_audit_log_tells_of_the_clusters_one_may_see(
    operator: Actor, sf: Cluster, other: Cluster
) -> None:
    post(scripted(operator), "/clusters/nyc/start")
    post(scripted(operator), "/clusters/sf/start")
    seen = get(scripted(granted("viewer", other)), "/audit").json()["entries"]
    assert {one["cluster"] for one in seen} == {"nyc"}


def test_entries_about_authentication_are_for_admins_and_the_person_concerned(
    operator: Actor, viewer: Actor, sf: Cluster
) -> None:
    """Also the page and its search; of other entries, only addresses are blank."""
    person, watcher, boss = login(operator), login(viewer), login(actor("admin"))
    post(person, "/clusters/sf/start")
    post(person, "/tokens", {"name": "script"})
    record(Actor(user_of(operator), "192.0.2.9"), "session.end_all", f"user {operator.name}")
    record(Automatic("weir"), "session.expire", f"user {operator.name}")

    def seen(client: Client) -> dict[tuple[str, str], str | None]:
        entries = get(client, "/audit?limit=100").json()["entries"]
        return {(entry["actor"], entry["action"]): entry["address"] for entry in entries}

    private = {
        (operator.name, "login"), (operator.name, "token.create"),
        (operator.name, "session.end_all"), ("weir", "session.expire"),
    }  # fmt: skip
    assert private <= seen(person).keys()
    assert private <= seen(boss).keys()
    assert not private & seen(watcher).keys()
    assert (viewer.name, "login") in seen(watcher)
    assert seen(watcher)[operator.name, "cluster.start"] == ""
    assert seen(boss)[operator.name, "cluster.start"] == "127.0.0.1"
    assert seen(boss)[operator.name, "session.end_all"] == "192.0.2.9"
    for address in ("/audit/", f"/audit/?q={operator.name}", "/audit/?action=session.end_all"):
        assert b">session.end_all<" not in watcher.get(address).content
    assert b">session.end_all<" in boss.get("/audit/").content
