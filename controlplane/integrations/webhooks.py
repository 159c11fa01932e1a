"""Webhooks: creation, changes, removal, and the secret that signs their messages.

Messages are signed by Standard Webhooks 1.0, whose libraries verify them: the HMAC-SHA256, under
the secret, of "{event id}.{seconds since 1970}.{body}".
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import urlsplit

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from controlplane.access import audit
from controlplane.access.roles import ADMIN, Actor, require, require_member
from controlplane.errors import Busy, Conflict, Fields, Invalid
from controlplane.events import outbox
from controlplane.integrations import formats, outbound
from controlplane.integrations.mails import recipients
from controlplane.models import AuditEntry, Cluster, Delivery, Webhook
from controlplane.pagination.lookup import row_by
from controlplane.wire.network.secrets import NoSecret, SecretOf, named_secret
from controlplane.wire.redaction import HIDDEN

PREFIX: Final = "whsec_"
MAX_NAME: Final = 100
# Every event is written once per webhook.
MAX_WEBHOOKS: Final = 50
# Messages that a user may request in an hour: tests, and those sent again.
MAX_SENT: Final = 30
KINDS: Final = tuple(str(kind) for kind in Webhook.Kind.values)


@dataclass(frozen=True)
class WebhookSpec:
    """A requested webhook; cluster None is all clusters."""

    name: str
    url: str
    kinds: Sequence[str] = KINDS
    cluster: Cluster | None = None
    active: bool = True
    format: str = formats.WEIR
    credential: str = ""


def create(actor: Actor, spec: WebhookSpec) -> Webhook:
    """Save a webhook. Raises `Forbidden`, `Invalid` per field, `Conflict` for too many."""
    require(actor, ADMIN, spec.cluster)
    # Before the transaction: resolving a name takes seconds, and SQLite has one writer.
    _check(spec)
    columns = _columns(spec)
    with transaction.atomic():
        if Webhook.objects.count() >= MAX_WEBHOOKS:
            text = f"At most {MAX_WEBHOOKS} webhooks: remove one first"
            raise Conflict("too_many_webhooks", text)
        hook = Webhook.objects.create(
            salt=secrets.token_hex(16),
            created_by=actor.name,
            created_at=timezone.now(),
            cluster=spec.cluster,
            **columns,
        )
        audit.record(
            actor, "webhook.create", hook.name, cluster=hook.cluster, after=_recorded(columns)
        )
    return hook


def change(actor: Actor, hook: Webhook, spec: WebhookSpec) -> Webhook:
    """Change all fields of a webhook except its cluster. Raises `Forbidden`, `Invalid` per field.

    An unchanged address is not resolved, so that a webhook without a receiver can be switched off.
    """
    require(actor, ADMIN, hook.cluster)
    _check(spec, spec_of(hook))
    before, after = _columns(spec_of(hook)), _columns(spec)
    for name, value in after.items():
        setattr(hook, name, value)
    # The cause of the failures may be gone.
    hook.rests_until, hook.failures = None, 0
    with transaction.atomic():
        hook.save(update_fields=[*after, "rests_until", "failures"])
        audit.record(
            actor, "webhook.change", hook.name, cluster=hook.cluster,
            before=_recorded(before), after=_recorded(after),
        )  # fmt: skip
    return hook


def _recorded(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns for the audit log, of the address only the host.

    More people read it than manage webhooks, and receivers such as chats have a secret in the path.
    The beginning of its sha256 shows a change.
    """
    url = urlsplit(columns["url"])
    host = url.netloc.rpartition("@")[2]
    digest = hashlib.sha256(columns["url"].encode()).hexdigest()[:12]
    return {**columns, "url": f"{url.scheme}://{host}/{HIDDEN}", "url_sha256": digest}


@transaction.atomic
def renew_secret(actor: Actor, hook: Webhook) -> Webhook:
    """Give a webhook another secret, which signs every message from now on. Raises `Forbidden`."""
    require(actor, ADMIN, hook.cluster)
    hook.salt = secrets.token_hex(16)
    hook.save(update_fields=["salt"])
    audit.record(actor, "webhook.secret", hook.name, cluster=hook.cluster)
    return hook


@transaction.atomic
def remove(actor: Actor, hook: Webhook) -> None:
    """Delete a webhook with its deliveries. Raises `Forbidden`."""
    require(actor, ADMIN, hook.cluster)
    before = _recorded({"url": hook.url, "kinds": hook.kinds})
    audit.record(actor, "webhook.remove", hook.name, cluster=hook.cluster, before=before)
    hook.delete()


@transaction.atomic
def test(actor: Actor, hook: Webhook) -> Delivery:
    """Send a message of type test, also to an inactive webhook. Raises `Forbidden`, `Busy`."""
    require(actor, ADMIN, hook.cluster)
    check_sending(actor)
    Webhook.objects.filter(pk=hook.pk).update(rests_until=None)
    text = f"{actor.name} tries whether this webhook works"
    slug = None if hook.cluster is None else hook.cluster.slug
    delivery = outbox.write([hook], outbox.TEST, {"cluster": slug, "text": text})[0]
    audit.record(
        actor, "webhook.test", hook.name, cluster=hook.cluster, after={"event": str(delivery.event)}
    )
    return delivery


def check_sending(actor: Actor) -> None:
    """Raise `Busy` if a user has requested too many messages to webhooks in the last hour."""
    since = timezone.now() - timedelta(hours=1)
    sent = AuditEntry.objects.filter(
        at__gt=since, actor=actor.name, action__in=("webhook.test", "webhook.again")
    )
    if sent.count() >= MAX_SENT:
        text = f"At most {MAX_SENT} messages an hour are sent on request: try again later"
        raise Busy("too_many_messages", text, 600)


def visible_webhooks(actor: Actor) -> "QuerySet[Webhook]":
    """Return the webhooks that the actor may manage, by name. Raises `Forbidden`."""
    require_member(actor)
    rows = Webhook.objects.select_related("cluster").order_by("name", "pk")
    if actor.may(ADMIN):
        return rows
    # A user who sees all clusters may be admin of some.
    visible = actor.clusters
    if visible is None:
        visible = frozenset(Cluster.objects.values_list("pk", flat=True))
    administered = [pk for pk in visible if actor.may(ADMIN, pk)]
    if not administered:
        require(actor, ADMIN)
    return rows.filter(cluster__in=administered)


def webhook_by_id(actor: Actor, pk: int) -> Webhook:
    """Return a webhook that the actor may manage. Raises `Forbidden`, `NotFound`."""
    return row_by(visible_webhooks(actor), "webhook", pk=pk)


def secret_of(hook: Webhook) -> str:
    """Return the secret that a receiver verifies messages with."""
    return PREFIX + base64.b64encode(_key(hook)).decode()


def signed(hook: Webhook, event: str, body: str, now: datetime) -> dict[str, str]:
    """Return the headers of a message that is sent at a moment."""
    return signature_headers(_key(hook), event, body, now)


def signature_headers(key: bytes, event: str, body: str, now: datetime) -> dict[str, str]:
    """Return the headers of a message that is signed with a key."""
    seconds = int(now.timestamp())
    signed_text = f"{event}.{seconds}.{body}".encode()
    signature = base64.b64encode(hmac.digest(key, signed_text, "sha256")).decode()
    return {
        "webhook-id": event,
        "webhook-timestamp": str(seconds),
        "webhook-signature": f"v1,{signature}",
    }


def _key(hook: Webhook) -> bytes:
    label = f"weir.webhook.{hook.salt}".encode()
    return hmac.digest(settings.SECRET_KEY.encode(), label, hashlib.sha256)


def _columns(spec: WebhookSpec) -> dict[str, object]:
    return {
        "name": spec.name.strip(),
        "format": spec.format,
        "credential": spec.credential.strip(),
        "url": spec.url.strip(),
        "kinds": [kind for kind in KINDS if kind in spec.kinds],
        "active": spec.active,
    }


def spec_of(hook: Webhook) -> WebhookSpec:
    """Return the specification of a webhook."""
    return WebhookSpec(
        hook.name, hook.url, tuple(hook.kinds), hook.cluster, hook.active,
        hook.format, hook.credential,
    )  # fmt: skip


def _receiver(spec: WebhookSpec) -> tuple[str, str, str]:
    return spec.format, spec.credential.strip(), spec.url.strip()


def _check_receiver(spec: WebhookSpec) -> None:
    """Raise `NoSecret` without the secret of the credential, else as the check of its address."""
    credential = spec.credential.strip()
    if credential or spec.format == formats.PAGERDUTY:
        named_secret(SecretOf.WEBHOOKS, credential)
    check = recipients if spec.format == formats.EMAIL else outbound.resolved
    check(spec.url.strip())


def _check(spec: WebhookSpec, known: WebhookSpec | None = None) -> None:
    faults: Fields = {}
    if not 1 <= len(spec.name.strip()) <= MAX_NAME:
        faults["name"] = [f"Give a name of at most {MAX_NAME} characters"]
    if not spec.kinds or set(spec.kinds) - set(KINDS):
        faults["kinds"] = [f"Must be one or more of {', '.join(KINDS)}"]
    if spec.format not in formats.NAMES:
        faults["format"] = [f"Must be one of {', '.join(formats.NAMES)}"]
    try:
        if known is None or _receiver(spec) != _receiver(known):
            _check_receiver(spec)
    except NoSecret as absent:
        faults["credential"] = [str(absent)]
    except (outbound.AddressRejected, outbound.AddressUnreachable) as refused:
        faults["url"] = [str(refused)]
    if faults:
        raise Invalid(faults)
