"""Everything that changes or sends has its entry in the audit log, and repeats do not fill it.

Actions of pages call the services of these operations (`test_page_actions`).
"""

import json
from datetime import timedelta
from typing import Any, Final

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from controlplane.access import audit
from controlplane.access.audit import LOGGED, PERIOD
from controlplane.access.roles import Actor
from controlplane.background.retention import history
from controlplane.models import AuditEntry, Cluster, Grant, RoutineActions, SavedView, SecondFactor
from tests.controlplane.api.authorisation.addresses import Address, operations
from tests.controlplane.api.callers import JSON, scripted, user_of
from tests.support.api_world import address_of, rich_cluster
from tests.support.cluster import actor, confirmed
from tests.support.texts import SUMMARY_JSON

# Rows about entries and sessions themselves.
_APART: Final = ("routineactions", "auditentry", "auditchain", "loginsession", "django_session")
_WRITES: Final = ("INSERT", "UPDATE", "DELETE")
# What the examples of the documentation do not fit.
_BODIES: Final[dict[str, Any]] = {
    "streams_records_set_log": {"url": "", "limit_mb": 777},
    "integrations_webhooks_change_webhook": {"active": False},
    "queries_routes_submit_query": {"name": "law", "streams": ["s0"], "text": SUMMARY_JSON},
    "queries_routes_end_queries": {"names": ["q"], "reason": "law"},
    "clusters_health_decide_incident": {"choice": "restart", "reason": "law"},
}
_QUERIES: Final = {"clusters_lifecycle_remove_cluster": "?confirm=sf"}
# The examples change the values of at least so many operations.
_FEWEST: Final = 45


@pytest.fixture
def world(db: None, redis_url: str) -> Cluster:
    cluster = rich_cluster(actor("operator"))
    # Whom addresses with a user name.
    user = User.objects.create_user("1")
    SecondFactor.objects.create(
        user=user, nonce="n", created_at=timezone.now(), confirmed_at=timezone.now()
    )
    for place in (cluster, None):
        Grant.objects.create(user=user, cluster=place, role="viewer", granted_at=timezone.now())
    return cluster


@pytest.fixture
def admin(world: Cluster) -> Client:
    root = actor("admin", "root")
    SavedView.objects.update(user=user_of(root))
    client = Client()
    client.force_login(user_of(root))
    return confirmed(client)


def performed(client: Client, world: Cluster, address: Address) -> tuple[int, list[str], list[str]]:
    """Return the status of an operation, its statements that write, and its entries' actions."""
    path = address_of(address.path, world) + _QUERIES.get(address.name, "")
    given = _BODIES.get(address.name)
    body = (address.body or "") if given is None else json.dumps(given)
    with transaction.atomic():
        newest = max(AuditEntry.objects.values_list("pk", flat=True))
        with CaptureQueriesContext(connection) as ran:
            response = client.generic(address.method.upper(), path, body, JSON)
        new = AuditEntry.objects.filter(pk__gt=newest).values_list("action", flat=True)
        entries = list(new)
        transaction.set_rollback(True)
    writes = [
        statement for row in ran if (statement := row["sql"]).startswith(_WRITES)
        and not any(name in statement.partition("(")[0] for name in _APART)
    ]  # fmt: skip
    return response.status_code, writes, entries


def test_every_operation_that_changes_something_has_an_entry(world: Cluster, admin: Client) -> None:
    recorded, unrecorded = set(), {}
    for address in operations():
        if address.method == "get":
            continue
        status, writes, entries = performed(admin, world, address)
        assert status != 500, address.name
        if status < 300 and writes:
            if entries:
                recorded.add(address.name)
            else:
                unrecorded[address.name] = writes
    assert set(unrecorded) <= {
        # It verifies entries, and writes the result; it changes nothing.
        "access_verify_audit",
        # The example applies what the cluster has already.
        "clusters_lifecycle_apply_cluster",
    }, unrecorded
    assert len(recorded) >= _FEWEST, sorted(recorded)


def test_nothing_that_a_viewer_repeats_fills_the_log(world: Cluster) -> None:
    """The first have an entry each, the others one with their number at the end of the hour."""
    viewer = scripted(actor("viewer", "eve"))
    view = {"list": "queries", "filter": "", "order": ""}
    made = viewer.post("/api/v1/views", json.dumps(view | {"name": "v"}), content_type=JSON)
    assert made.status_code == 201
    address = f"/api/v1/views/{made.json()['id']}"
    for number in range(LOGGED + 4):
        changed = viewer.patch(address, json.dumps({"name": f"v{number}"}), content_type=JSON)
        assert changed.status_code == 200
    entries = AuditEntry.objects.filter(actor="eve", action="view.save")
    assert entries.count() == LOGGED
    assert history.log_routine_actions(timezone.now()) == 0
    assert history.log_routine_actions(timezone.now() + PERIOD) == 1
    summary = entries.order_by("-pk")[0]
    assert (summary.after["count"], summary.after["last_object"]) == (5, f"queries v{LOGGED + 3}")
    assert not RoutineActions.objects.exists()


@pytest.mark.parametrize("token", [None, 7])
def test_equal_entries_are_counted_and_others_are_not(world: Cluster, token: int | None) -> None:
    """By actor, cluster, object, reason and values."""
    ann, ben = actor("operator", "ann"), actor("operator", "ben")
    other = Cluster.objects.create(slug="nyc", name="NYC")
    for person in (ann, ben):
        by = Actor(person.user, token=token)
        for _ in range(LOGGED + 3):
            for cluster in (world, other, None):
                audit.record(by, "cluster.x", "sf", cluster=cluster, after={"a": 1})
        for number in range(LOGGED + 3):
            audit.record(by, "cluster.y", "sf", cluster=world, after={"a": number})
            audit.record(by, "cluster.z", f"{number}", cluster=world)
    counts = {name: AuditEntry.objects.filter(action=name).count() for name in
              ("cluster.x", "cluster.y", "cluster.z")}  # fmt: skip
    each = 2 * (LOGGED + 3)
    assert counts == {"cluster.x": 2 * 3 * LOGGED, "cluster.y": each, "cluster.z": each}
    assert history.log_routine_actions(timezone.now() + PERIOD) == 6
    summaries = AuditEntry.objects.filter(action="cluster.x", object="3 more")
    actors = summaries.values_list("actor", flat=True)
    assert sorted(actors) == ["ann"] * 3 + ["ben"] * 3


def test_the_next_hour_has_entries_again(world: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    ann, now = actor("operator", "ann"), timezone.now()
    for hour in range(2):
        moment = now + timedelta(hours=hour)
        monkeypatch.setattr("django.utils.timezone.now", lambda moment=moment: moment)
        for _ in range(LOGGED + 1):
            audit.record(ann, "logout", "user ann")
    assert AuditEntry.objects.filter(action="logout").count() == 2 * LOGGED
