"""Receivers get the documented shapes: chats, pagers, Alertmanager and mailboxes."""

import json
from collections.abc import Iterator
from email import message_from_bytes
from email.policy import default as email_policy
from queue import Queue
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session
from django.db import transaction
from django.test import Client
from pytest_django import Settings

from controlplane.access.roles import Actor
from controlplane.events.publish import announce, event
from controlplane.integrations import deliveries
from controlplane.models import Cluster, Delivery, Webhook
from tests.controlplane.api.callers import post, scripted, user_of
from tests.support.destinations import RECEIVERS, list_destinations
from tests.support.receiver import Receiver, receiving
from tests.support.redis_server import free_port

pytestmark = pytest.mark.django_db(transaction=True)
SITE = "https://weir.example.org"
KEY = "R0UTING-key-of-the-pager"


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> Iterator[Receiver]:
    list_destinations(monkeypatch, RECEIVERS)
    monkeypatch.setenv("WEIR_WEBHOOK_SECRET_PAGER", KEY)
    settings.CSRF_TRUSTED_ORIGINS = [SITE]
    with receiving() as found:
        yield found


def hook_of(admin: Actor, url: str, name: str, **more: Any) -> Webhook:
    body = {"name": name, "url": url, "format": name} | more
    made = post(scripted(admin), "/webhooks", body)
    assert made.status_code == 201, made.content
    return Webhook.objects.get(pk=made.json()["webhook"]["id"])


def alert_event(cluster: Cluster, state: str) -> None:
    with transaction.atomic():
        announce(cluster.pk, event(
            "alert", "SF: load 1.2 > 0.8 & <rising>", pk=7, state=state, severity="critical",
            url="/clusters/sf/alerts/7/",
        ))  # fmt: skip


def sent(hook: Webhook, receiver: Receiver) -> Any:
    assert deliveries.send(hook.pk) == 1, Delivery.objects.latest("pk").error
    headers, body = receiver.came.get(timeout=60)
    return json.loads(body) | {"_headers": headers} if body[0] == "{" else json.loads(body)


def test_slack_gets_a_text_in_its_marks(admin: Actor, sf: Cluster, receiver: Receiver) -> None:
    hook = hook_of(admin, receiver.url, "slack")
    alert_event(sf, "firing")
    assert sent(hook, receiver)["text"] == (
        "*sf: alert firing*\nSF: load 1.2 &gt; 0.8 &amp; &lt;rising&gt;\n"
        f"<{SITE}/clusters/sf/alerts/7/|Open in Weir>"
    )


def test_teams_gets_an_adaptive_card(admin: Actor, sf: Cluster, receiver: Receiver) -> None:
    hook = hook_of(admin, receiver.url, "teams")
    alert_event(sf, "firing")
    message = sent(hook, receiver)
    [attachment] = message["attachments"]
    card = attachment["content"]
    assert (message["type"], attachment["contentType"], card["type"]) == (
        "message", "application/vnd.microsoft.card.adaptive", "AdaptiveCard",
    )  # fmt: skip
    assert [block["type"] for block in card["body"]] == ["TextBlock", "TextBlock"]
    [action] = card["actions"]
    assert (action["type"], action["url"]) == ("Action.OpenUrl", f"{SITE}/clusters/sf/alerts/7/")


def test_a_pager_has_one_incident_from_the_alert_to_its_end(
    admin: Actor, sf: Cluster, receiver: Receiver
) -> None:
    """Its routing key is no row, and in no answer of the API."""
    hook = hook_of(admin, receiver.url, "pagerduty", credential="pager")
    seen = []
    for state in ("firing", "acknowledged", "cleared"):
        alert_event(sf, state)
        seen.append(sent(hook, receiver))
    assert [row["event_action"] for row in seen] == ["trigger", "acknowledge", "resolve"]
    assert {row["dedup_key"] for row in seen} == {"weir-sf-alert-7"}
    assert {row["routing_key"] for row in seen} == {KEY}
    payload = seen[0]["payload"]
    assert (payload["severity"], payload["source"]) == ("critical", "sf")
    assert payload["summary"].startswith("sf: alert firing: SF: load")
    assert all(KEY not in row.body for row in Delivery.objects.all())
    assert KEY not in scripted(admin).get(f"/api/v1/webhooks/{hook.pk}").content.decode()


def test_alertmanager_gets_the_same_labels_when_it_is_over(
    admin: Actor, sf: Cluster, receiver: Receiver
) -> None:
    hook = hook_of(admin, receiver.url, "alertmanager", credential="pager")
    alert_event(sf, "firing")
    [firing] = sent(hook, receiver)
    alert_event(sf, "cleared")
    assert deliveries.send(hook.pk) == 1
    headers, body = receiver.came.get(timeout=60)
    [resolved] = json.loads(body)
    assert headers["authorization"] == f"Bearer {KEY}"
    assert firing["labels"] == resolved["labels"] == {
        "alertname": "weir_alert", "cluster": "sf", "problem": "weir-sf-alert-7",
    }  # fmt: skip
    assert firing["startsAt"] < firing["endsAt"]
    assert "startsAt" not in resolved
    assert resolved["endsAt"] < firing["endsAt"]


@pytest.mark.parametrize("name", ["weir", "slack", "teams", "pagerduty", "alertmanager"])
def test_a_test_message_reaches_every_format(
    admin: Actor, sf: Cluster, receiver: Receiver, name: str
) -> None:
    hook = hook_of(admin, receiver.url, name, credential="pager")
    assert post(scripted(admin), f"/webhooks/{hook.pk}/test").status_code == 202
    assert deliveries.send(hook.pk) == 1
    assert "tries whether this webhook works" in receiver.came.get(timeout=60)[1]


class Mailbox:
    """A handler that keeps what came."""

    def __init__(self) -> None:
        self.came: Queue[Envelope] = Queue()

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802 - aiosmtpd's name
        del server, session
        self.came.put(envelope)
        return "250 OK"


def test_an_e_mail_goes_to_each_address(
    admin: Actor, sf: Cluster, settings: Settings, receiver: Receiver
) -> None:
    """By a real server; one that is down is tried again."""
    box = Mailbox()
    server = Controller(box, hostname="127.0.0.1", port=free_port())
    server.start()
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST = "127.0.0.1"
    settings.EMAIL_PORT = server.port
    settings.EMAIL_USE_TLS, settings.DEFAULT_FROM_EMAIL = False, "weir@example.org"
    try:
        hook = hook_of(admin, "mailto:ops@example.org,b@example.org", "email")
        alert_event(sf, "firing")
        assert deliveries.send(hook.pk) == 1, Delivery.objects.latest("pk").error
        envelope = box.came.get(timeout=60)
    finally:
        server.stop()
    assert envelope.rcpt_tos == ["ops@example.org", "b@example.org"]
    assert isinstance(envelope.content, bytes)
    message: Any = message_from_bytes(envelope.content, policy=email_policy)
    assert message["subject"] == "[Weir] sf: alert firing: SF: load 1.2 > 0.8 & <rising>"
    assert f"{SITE}/clusters/sf/alerts/7/" in message.get_content()
    assert message["message-id"] == f"<{Delivery.objects.get().event}@weir>"
    assert post(scripted(admin), f"/webhooks/{hook.pk}/test").status_code == 202
    assert deliveries.send(hook.pk) == 0
    assert Delivery.objects.filter(state="waiting", tries=1).count() == 1


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"format": "pagerduty"}, "credential"),
        ({"format": "slack", "credential": "absent"}, "credential"),
        ({"format": "slack", "credential": "../x"}, "credential"),
        ({"format": "fax"}, "format"),
        ({"format": "email", "url": "mailto:ops@example.org"}, "url"),
        ({"format": "slack", "url": "mailto:ops@example.org"}, "url"),
    ],
)
def test_what_a_format_needs_is_named(
    admin: Actor, receiver: Receiver, more: dict[str, Any], field: str
) -> None:
    """An e-mail needs a server of the site."""
    refused = post(scripted(admin), "/webhooks", {"name": "x", "url": receiver.url} | more)
    assert refused.status_code == 422
    assert field in refused.json()["fields"]


def test_the_page_chooses_the_format(admin: Actor, receiver: Receiver, client: Client) -> None:
    client.force_login(user_of(admin))
    values = {
        "name": "pager", "url": receiver.url, "kinds": ["alerts"], "format": "pagerduty",
        "credential": "pager",
    }  # fmt: skip
    page = client.post("/webhooks/add/", values).content.decode()
    assert KEY not in page
    hook = Webhook.objects.get()
    assert (hook.format, hook.credential) == ("pagerduty", "pager")
    client.post(f"/webhooks/{hook.pk}/change/", values | {"format": "slack", "credential": ""})
    hook.refresh_from_db()
    assert (hook.format, hook.credential) == ("slack", "")
