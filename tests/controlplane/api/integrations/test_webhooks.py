"""Webhooks: made by who may, told of what happens, signed, tried again, never sent inside."""

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from controlplane.access.roles import Actor
from controlplane.events.publish import announce, event
from controlplane.integrations import deliveries, outbound, webhooks
from controlplane.models import AuditEntry, Cluster, Delivery, Webhook
from controlplane.proposals import computation, decisions, requests
from tests.controlplane.api.callers import get, granted, post, scripted
from tests.support.cluster import placed
from tests.support.destinations import RECEIVERS, list_destinations
from tests.support.receiver import Receiver, receiving

pytestmark = pytest.mark.django_db(transaction=True)
PUBLIC = "https://8.8.8.8/hook"


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """A receiver on this machine, which the site allows."""
    list_destinations(monkeypatch, RECEIVERS)
    with receiving() as found:
        yield found


def hook_to(admin: Actor, url: str, **more: Any) -> tuple[Webhook, str]:
    made = post(scripted(admin), "/webhooks", {"name": "chat", "url": url} | more)
    assert made.status_code == 201, made.content
    return Webhook.objects.get(pk=made.json()["webhook"]["id"]), made.json()["secret"]


def ready_event(cluster: Cluster) -> None:
    with transaction.atomic():
        announce(cluster.pk, event("proposal", "Proposal 1: ready", pk=1, state="ready"))


def due_now() -> None:
    """Let every wait be over."""
    past = timezone.now() - timedelta(seconds=1)
    Delivery.objects.update(next_at=past)
    Webhook.objects.update(rests_until=None)


def test_a_message_is_signed_over_its_moment_and_body(
    admin: Actor, sf: Cluster, receiver: Receiver
) -> None:
    """As docs/api.md tells receivers to verify it."""
    hook, secret = hook_to(admin, receiver.url)
    ready_event(sf)
    assert deliveries.send(hook.pk) == 1
    headers, body = receiver.came.get(timeout=60)
    key = base64.b64decode(secret.removeprefix("whsec_"))
    told = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.{body}".encode()
    signature = base64.b64encode(hmac.new(key, told, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{signature}"
    assert abs(int(headers["webhook-timestamp"]) - timezone.now().timestamp()) < 60
    message = json.loads(body)
    assert (message["id"], message["type"]) == (headers["webhook-id"], "proposal.ready")
    assert message["data"]["cluster"] == "sf"


def test_the_database_holds_no_secret(admin: Actor, sf: Cluster, settings: Settings) -> None:
    """The same row under another site's secret has another one."""
    hook, secret = hook_to(admin, PUBLIC)
    assert all(secret[6:] not in str(value) for value in vars(hook).values())
    assert webhooks.secret_of(hook) == secret
    settings.SECRET_KEY = "another"
    assert webhooks.secret_of(hook) != secret


def test_what_does_not_arrive_is_tried_again_with_the_same_id(
    admin: Actor, sf: Cluster, receiver: Receiver
) -> None:
    """At least once: the receiver tells copies by the id."""
    hook, _ = hook_to(admin, receiver.url)
    receiver.answers = [503]
    ready_event(sf)
    assert deliveries.send(hook.pk) == 0
    row = Delivery.objects.get()
    assert (row.state, row.tries, row.status) == ("waiting", 1, 503)
    assert row.next_at > timezone.now()
    due_now()
    assert deliveries.send(hook.pk) == 1
    first, second = (receiver.came.get(timeout=60) for _ in range(2))
    assert first[0]["webhook-id"] == second[0]["webhook-id"]
    assert first[1] == second[1]
    row.refresh_from_db()
    assert (row.state, row.tries, row.error) == ("delivered", 2, "")


def test_a_receiver_that_is_down_rests_with_all_its_messages(
    admin: Actor, sf: Cluster, receiver: Receiver
) -> None:
    """One try tells enough; the others wait behind it, in order."""
    hook, _ = hook_to(admin, receiver.url)
    receiver.answers = [500]
    for _ in range(3):
        ready_event(sf)
    deliveries.send(hook.pk)
    assert receiver.came.qsize() == 1
    assert deliveries.send(hook.pk) == 0
    assert receiver.came.qsize() == 1
    due_now()
    assert deliveries.send(hook.pk) == 3
    hook.refresh_from_db()
    assert (hook.failures, hook.rests_until) == (0, None)


def test_a_refused_message_does_not_hold_up_the_others(
    admin: Actor, sf: Cluster, receiver: Receiver
) -> None:
    hook, _ = hook_to(admin, receiver.url)
    receiver.answers = [400]
    ready_event(sf)
    ready_event(sf)
    assert deliveries.send(hook.pk) == 1
    assert sorted(Delivery.objects.values_list("state", "status")) == [
        ("delivered", 200),
        ("waiting", 400),
    ]


def test_it_is_given_up_after_many_tries(admin: Actor, sf: Cluster, receiver: Receiver) -> None:
    hook, _ = hook_to(admin, receiver.url)
    ready_event(sf)
    Delivery.objects.update(tries=deliveries.MAX_TRIES - 1)
    receiver.answers = [404]
    deliveries.send(hook.pk)
    assert Delivery.objects.get().state == "failed"


def test_waits_grow_to_an_hour() -> None:
    waits = [deliveries.retry_delay(tries).total_seconds() for tries in range(1, 21)]
    assert 4 <= waits[0] <= 6
    assert waits[3] > 2 * waits[0]
    assert max(waits) <= 1.2 * 3600


def test_one_worker_at_a_time_sends(admin: Actor, sf: Cluster, receiver: Receiver) -> None:
    """A claim of a dead worker runs out."""
    hook, _ = hook_to(admin, receiver.url)
    ready_event(sf)
    Webhook.objects.update(busy_until=timezone.now() + timedelta(seconds=60))
    assert deliveries.send(hook.pk) == 0
    Webhook.objects.update(busy_until=timezone.now() - timedelta(seconds=1))
    assert deliveries.send(hook.pk) == 1


def test_what_was_rolled_back_is_not_told(admin: Actor, sf: Cluster) -> None:
    hook_to(admin, PUBLIC)
    with transaction.atomic():
        announce(sf.pk, event("proposal", "Proposal 1: ready", pk=1, state="ready"))
        transaction.set_rollback(True)
    assert not Delivery.objects.exists()


@pytest.mark.parametrize(
    ("kind", "state", "wanted"),
    [
        ("proposal", "ready", {"proposals"}),
        ("proposal", "executing", {"executions"}),
        ("proposal", "stale", {"proposals", "executions"}),
        ("execution", "step", {"executions"}),
        ("decision", "recommended", {"alerts"}),
        ("routing", None, set()),
        ("state", "running", set()),
    ],
)
def test_a_webhook_is_told_what_it_asked_for(
    admin: Actor, sf: Cluster, kind: str, state: str | None, wanted: set[str]
) -> None:
    for one in webhooks.KINDS:
        hook_to(admin, PUBLIC, name=one, kinds=[one])
    announce(sf.pk, event(kind, "x", state=state))
    assert {row.webhook.name for row in Delivery.objects.all()} == wanted


def test_a_webhook_of_another_cluster_and_one_that_is_off_are_not_told(
    admin: Actor, sf: Cluster
) -> None:
    Cluster.objects.create(slug="nyc", name="NYC")
    hook_to(admin, PUBLIC, cluster="nyc")
    hook_to(admin, PUBLIC, active=False)
    ready_event(sf)
    assert not Delivery.objects.exists()


def test_the_life_of_a_proposal_is_told(admin: Actor, operator: Actor, sf: Cluster) -> None:
    """Asked, computed, rejected; not how far it is computed."""
    hook_to(admin, PUBLIC)
    placed(operator, sf, {"a": ["s0"], "b": ["s0", "s1"], "c": ["s5"]})
    proposal = requests.request(operator, sf, "mms", {"nu": 1.0})
    computation.compute(proposal.pk)
    proposal.refresh_from_db()
    decisions.reject(admin, proposal, "not today")
    types = [json.loads(row.body)["type"] for row in Delivery.objects.order_by("pk")]
    assert types == ["proposal.computing", "proposal.ready", "proposal.rejected"]


@pytest.mark.parametrize(
    "url", ["https://127.0.0.1/", "https://169.254.169.254/latest", "http://8.8.8.8/", "nonsense"]
)
def test_an_address_inside_is_refused_at_registration(admin: Actor, sf: Cluster, url: str) -> None:
    answer = post(scripted(admin), "/webhooks", {"name": "x", "url": url})
    assert (answer.status_code, list(answer.json()["fields"])) == (422, ["url"])


def test_an_address_that_has_moved_inside_is_refused_when_it_is_sent_to(
    admin: Actor, sf: Cluster, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was allowed once is looked at again, each time."""
    hook, _ = hook_to(admin, receiver.url)
    ready_event(sf)
    list_destinations(monkeypatch, "")
    assert deliveries.send(hook.pk) == 0
    assert "is not in the list of the site" in Delivery.objects.get().error
    assert receiver.came.empty()


def test_an_operator_manages_none_and_an_admin_of_a_cluster_its_own(
    operator: Actor, sf: Cluster
) -> None:
    body = {"name": "x", "url": PUBLIC}
    assert post(scripted(operator), "/webhooks", body).status_code == 403
    assert get(scripted(operator), "/webhooks").status_code == 403
    mine = scripted(granted("admin", sf))
    assert post(mine, "/webhooks", body).status_code == 403
    assert post(mine, "/webhooks", body | {"cluster": "sf"}).status_code == 201
    assert [one["cluster"] for one in get(mine, "/webhooks").json()] == ["sf"]


def test_who_sees_all_clusters_and_is_admin_of_one_manages_its_own(sf: Cluster) -> None:
    """The role of a cluster counts beside that of all."""
    local = granted("admin", sf)
    local.user.groups.add(Group.objects.get_or_create(name="viewer")[0])  # type: ignore[union-attr]
    mine = scripted(local)
    assert post(mine, "/webhooks", {"name": "x", "url": PUBLIC, "cluster": "sf"}).status_code == 201
    assert [one["cluster"] for one in get(mine, "/webhooks").json()] == ["sf"]


def test_names_are_looked_up_outside_of_transactions(
    admin: Actor, sf: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It can take seconds, and SQLite has one writer at a time."""
    asked: list[bool] = []
    looked_up = outbound.resolved

    def watched(url: str) -> outbound.Target:
        asked.append(connection.in_atomic_block)
        return looked_up(url)

    monkeypatch.setattr(outbound, "resolved", watched)
    hook, _ = hook_to(admin, PUBLIC)
    changed = webhooks.WebhookSpec("chat", "https://8.8.4.4/")
    webhooks.change(admin, hook, changed)
    assert asked == [False, False]


def test_a_new_secret_signs_what_is_sent_from_then_on(
    admin: Actor, sf: Cluster, receiver: Receiver
) -> None:
    """Also a message that was waiting."""
    hook, first = hook_to(admin, receiver.url)
    ready_event(sf)
    renewed = post(scripted(admin), f"/webhooks/{hook.pk}/secret")
    assert renewed.status_code == 200
    secret = renewed.json()["secret"]
    assert secret != first
    assert deliveries.send(hook.pk) == 1
    headers, body = receiver.came.get(timeout=60)
    key = base64.b64decode(secret.removeprefix("whsec_"))
    told = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.{body}".encode()
    signature = base64.b64encode(hmac.new(key, told, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{signature}"


def test_a_message_that_was_given_up_is_sent_again(
    admin: Actor, sf: Cluster, receiver: Receiver
) -> None:
    """With all its tries, under the same id, although the webhook rests; not while it is off."""
    hook, _ = hook_to(admin, receiver.url)
    ready_event(sf)
    later = timezone.now() + timedelta(hours=1)
    Delivery.objects.update(state="failed", tries=20)
    Webhook.objects.update(rests_until=later, active=False)
    row, script = Delivery.objects.get(), scripted(admin)
    path = f"/webhooks/{hook.pk}/deliveries/{row.pk}/again"
    assert post(script, path).json()["code"] == "webhook_off"
    Webhook.objects.update(active=True)
    asked = post(script, path)
    assert (asked.status_code, asked.json()["tries"]) == (202, 0)
    assert deliveries.send(hook.pk) == 1
    assert receiver.came.get(timeout=60)[0]["webhook-id"] == str(row.event)
    assert post(script, f"/webhooks/{hook.pk}/deliveries/{row.pk + 1}/again").status_code == 404
    assert AuditEntry.objects.filter(action="webhook.again").count() == 1


def test_it_is_changed_and_removed_with_a_trace(admin: Actor, sf: Cluster) -> None:
    hook, _ = hook_to(admin, PUBLIC)
    script = scripted(admin)
    changed = {"name": "pager", "url": PUBLIC, "kinds": ["alerts"], "active": False}
    path = f"/api/v1/webhooks/{hook.pk}"
    told = script.put(path, json.dumps(changed), content_type="application/json").json()
    assert (told["name"], told["kinds"], told["active"]) == ("pager", ["alerts"], False)
    assert script.delete(path).status_code == 204
    assert script.get(path).status_code == 404
    actions = AuditEntry.objects.filter(action__startswith="webhook").order_by("pk")
    assert [row.action for row in actions] == [
        "webhook.create",
        "webhook.change",
        "webhook.remove",
    ]


def test_a_test_message_reaches_the_receiver_through_a_worker(
    admin: Actor, sf: Cluster, receiver: Receiver, celery_worker: None
) -> None:
    """From the button over the broker to the receiver, and back into the row."""
    hook, _ = hook_to(admin, receiver.url, active=False)
    asked = post(scripted(admin), f"/webhooks/{hook.pk}/test")
    assert asked.status_code == 202
    headers, body = receiver.came.get(timeout=30)
    assert json.loads(body)["type"] == "test"
    assert headers["webhook-id"] == asked.json()["event"]


def test_what_became_of_messages_is_told(admin: Actor, sf: Cluster, receiver: Receiver) -> None:
    hook, _ = hook_to(admin, receiver.url)
    for _ in range(5):
        ready_event(sf)
    deliveries.send(hook.pk)
    script: Client = scripted(admin)
    told = get(script, f"/webhooks/{hook.pk}/deliveries?limit=3&state=delivered").json()
    assert (told["total"], len(told["deliveries"])) == (5, 3)
    assert told["next"]
    assert told["deliveries"][0]["next_at"] is None
    assert deliveries.prune(timezone.now() + timedelta(days=8)) == 5


def test_an_address_in_other_characters_is_sent_to_in_ascii(
    admin: Actor, sf: Cluster, receiver: Receiver
) -> None:
    """Paths are percent-encoded, hosts in IDNA; the row keeps what was written."""
    hook, _ = hook_to(admin, f"{receiver.url}/grüße/日本?q=ö")
    assert hook.url.endswith("/grüße/日本?q=ö")
    ready_event(sf)
    assert deliveries.send(hook.pk) == 1


def test_a_host_without_an_ascii_form_is_refused(admin: Actor) -> None:
    url = f"https://{'ü' * 70}.example/"
    refused = post(scripted(admin), "/webhooks", {"name": "chat", "url": url})
    assert refused.status_code == 422
    assert "IDNA" in refused.content.decode()


@pytest.mark.parametrize(
    "error", [UnicodeEncodeError("ascii", "ü", 0, 1, "ordinal"), RecursionError(), MemoryError()]
)
def test_whatever_an_attempt_raises_is_a_failed_attempt(
    admin: Actor, sf: Cluster, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """It waits for its next one as after a receiver that does not respond, and fails in the end."""
    hook, _ = hook_to(admin, receiver.url)
    ready_event(sf)

    def post_(*_: object) -> None:
        raise error

    monkeypatch.setattr(outbound, "post", post_)
    assert deliveries.send(hook.pk) == 0
    delivery = hook.deliveries.get()
    hook.refresh_from_db()
    assert (delivery.tries, delivery.state, hook.failures) == (1, "waiting", 1)
    assert type(error).__name__ in delivery.error
    assert delivery.next_at > timezone.now()
    for _ in range(deliveries.MAX_TRIES - 1):
        due_now()
        deliveries.send(hook.pk)
    delivery.refresh_from_db()
    assert delivery.state == "failed"


def test_an_answer_with_nul_is_a_failed_attempt(
    admin: Actor, sf: Cluster, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL stores no NUL."""
    hook, _ = hook_to(admin, receiver.url)
    ready_event(sf)
    monkeypatch.setattr(outbound, "post", lambda *_: (500, "a\0b"))
    deliveries.send(hook.pk)
    assert hook.deliveries.get().error == "500: a?b"


def test_tests_are_audited_and_bounded(admin: Actor, receiver: Receiver) -> None:
    """Each has an entry; of a user an hour has so many, with the messages that are sent again."""
    hook, _ = hook_to(admin, receiver.url)
    client = scripted(admin)
    codes = [
        post(client, f"/webhooks/{hook.pk}/test", {}).status_code
        for _ in range(webhooks.MAX_SENT + 3)
    ]
    assert codes == [202] * webhooks.MAX_SENT + [503] * 3 or codes[-3:] == [429] * 3
    assert AuditEntry.objects.filter(action="webhook.test").count() == webhooks.MAX_SENT
    assert hook.deliveries.count() == webhooks.MAX_SENT
    again = hook.deliveries.first()
    assert again is not None
    path = f"/webhooks/{hook.pk}/deliveries/{again.pk}/again"
    assert post(client, path, {}).status_code == codes[-1]


def test_messages_of_a_webhook_are_bounded(
    admin: Actor, sf: Cluster, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest waiting ones have failed, with the reason; the oldest finished ones are gone."""
    monkeypatch.setattr(deliveries, "MAX_WAITING", 3)
    monkeypatch.setattr(deliveries, "MAX_FINISHED", 1)
    hook, _ = hook_to(admin, receiver.url)
    for _ in range(6):
        ready_event(sf)
    deliveries.prune(timezone.now())
    rows = hook.deliveries.order_by("pk")
    assert [row.state for row in rows] == ["failed", "waiting", "waiting", "waiting"]
    assert "more than 3 messages waited" in rows[0].error
