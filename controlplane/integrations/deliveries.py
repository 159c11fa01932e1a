"""Delivery of the outbox: at least once, in order, with exponential back-off; lists of messages.

One worker at a time sends the messages of a webhook. If its address does not respond (or returns
5xx), the whole webhook rests; if it rejects one message (4xx), only that message waits.
"""

import logging
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Final

from django.db import transaction
from django.db.models import Count, F, OuterRef, Q, QuerySet, Subquery
from django.utils import timezone

from controlplane.access import audit
from controlplane.access.roles import ADMIN, Actor, require
from controlplane.errors import Conflict
from controlplane.events import outbox
from controlplane.events.task_names import SEND_WEBHOOK, send_on_commit
from controlplane.integrations import formats, outbound, webhooks
from controlplane.integrations.mails import send_mail
from controlplane.models import Delivery, Webhook
from controlplane.pagination.chunks import delete_in_chunks
from controlplane.pagination.listing import Filters, Listing, choice_filter
from controlplane.pagination.lookup import row_by
from controlplane.wire.network.secrets import NoSecret, SecretOf, named_secret

logger = logging.getLogger(__name__)
STATES = tuple(str(state) for state in Delivery.State.values)


@dataclass(frozen=True)
class DeliveryFilters(Filters):
    """Filters of the list; state "" is all."""

    state: str = choice_filter("state", lambda: STATES)


@dataclass(frozen=True)
class HookSummary:
    """A webhook, its newest message (None before the first), and how many wait to be sent."""

    hook: Webhook
    last: Delivery | None
    waiting: int


def newest_error(hook: Webhook) -> str:
    """Return the reason of the newest failed attempt of a webhook, "" without one."""
    failed = hook.deliveries.exclude(error="").order_by("-created_at", "-pk")
    return failed.values_list("error", flat=True).first() or ""


def hook_summaries(hooks: Sequence[Webhook]) -> list[HookSummary]:
    """Return the summary of each webhook, in three SQL queries."""
    ids = [hook.pk for hook in hooks]
    newest = Delivery.objects.filter(webhook=OuterRef("pk")).order_by("-created_at", "-pk")
    last_ids = Webhook.objects.filter(pk__in=ids).values_list(Subquery(newest.values("pk")[:1]))
    deliveries = Delivery.objects.defer("body").filter(pk__in=[pk for (pk,) in last_ids if pk])
    last = {row.webhook_id: row for row in deliveries}
    waits = Delivery.objects.filter(webhook__in=ids, state=Delivery.State.WAITING)
    waiting = dict(waits.order_by().values_list("webhook").annotate(Count("pk")))
    return [HookSummary(hook, last.get(hook.pk), waiting.get(hook.pk, 0)) for hook in hooks]


def deliveries_listing(hook: Webhook, filters: DeliveryFilters) -> Listing[Delivery, Delivery]:
    """Return the messages of a webhook, newest first."""
    deliveries = Delivery.objects.filter(webhook=hook)
    if filters.state:
        deliveries = deliveries.filter(state=filters.state)
    return Listing(deliveries, ("-created_at", "-pk"), list, filters)


# 5 s, 10 s, ... up to an hour: twenty attempts cover an outage of half a day.
FIRST_WAIT_S: Final = 5.0
LONGEST_WAIT_S: Final = 3600.0
MAX_TRIES: Final = 20
# Messages and time of one task, and its lease of the webhook; an attempt takes some seconds.
BATCH: Final = 20
BUDGET: Final = timedelta(seconds=20)
LEASE: Final = timedelta(seconds=120)
KEPT: Final = timedelta(days=7)
# Messages of a webhook that are kept.
MAX_WAITING: Final = 1_000
MAX_FINISHED: Final = 10_000
_ERROR: Final = 300


def send(webhook_id: int) -> int:
    """Send the due messages of a webhook unless another worker does; return how many succeeded."""
    now = timezone.now()
    if not _claim(webhook_id, now):
        return 0
    try:
        arrived = _send_due(Webhook.objects.get(pk=webhook_id), now)
    finally:
        Webhook.objects.filter(pk=webhook_id).update(busy_until=None)
    # Not after an exception: the beat retries, with a pause.
    if _due(timezone.now()).filter(webhook=webhook_id).exists():
        send_on_commit(SEND_WEBHOOK, webhook_id)
    return arrived


def send_due(now: datetime) -> int:
    """Queue the sending of all due messages; return the number of webhooks."""
    due = set(_due(now).values_list("webhook", flat=True))
    for webhook_id in due:
        send_on_commit(SEND_WEBHOOK, webhook_id, expires_s=30)
    return len(due)


@transaction.atomic
def send_again(actor: Actor, hook: Webhook, pk: int) -> Delivery:
    """Send a message now, again or before its next attempt; its id does not change.

    Its attempts begin again, and its webhook no longer rests. Raises `Forbidden`, `NotFound`,
    `Busy` (`webhooks.check_sending`), `Conflict` for a webhook that is switched off.
    """
    require(actor, ADMIN, hook.cluster)
    webhooks.check_sending(actor)
    row = row_by(Delivery.objects.filter(webhook=hook), "delivery", pk=pk)
    if not hook.active and row.kind != outbox.TEST:
        raise Conflict("webhook_off", "This webhook is off: switch it on first")
    row.state, row.tries, row.next_at = Delivery.State.WAITING, 0, timezone.now()
    row.delivered_at = None
    row.save(update_fields=["state", "tries", "next_at", "delivered_at"])
    Webhook.objects.filter(pk=hook.pk).update(rests_until=None)
    values = {"event": str(row.event), "type": row.kind}
    audit.record(actor, "webhook.again", hook.name, cluster=hook.cluster, after=values)
    send_on_commit(SEND_WEBHOOK, hook.pk)
    return row


def prune(now: datetime) -> int:
    """Delete finished messages older than a week, or of too many; return how many.

    Of the messages that wait for a receiver, only the newest stay; the others have failed.
    """
    finished = Delivery.objects.exclude(state=Delivery.State.WAITING)
    deleted = delete_in_chunks(finished.filter(created_at__lt=now - KEPT))
    for hook in Webhook.objects.all():
        waiting = hook.deliveries.filter(state=Delivery.State.WAITING).order_by("-pk")
        error = f"Not sent: more than {MAX_WAITING:,} messages waited for this receiver"
        oldest = waiting.values_list("pk", flat=True)[MAX_WAITING : MAX_WAITING + 1]
        for pk in oldest:
            waiting.filter(pk__lte=pk).update(state=Delivery.State.FAILED, error=error)
        for pk in (
            finished.filter(webhook=hook)
            .order_by("-pk")
            .values_list("pk", flat=True)[MAX_FINISHED : MAX_FINISHED + 1]
        ):
            deleted += delete_in_chunks(finished.filter(webhook=hook, pk__lte=pk))
    return deleted


def retry_delay(tries: int) -> timedelta:
    """Return the delay after a number of attempts, with a random jitter of a fifth."""
    seconds = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** min(tries - 1, 20))
    # Not for secrets: a receiver that is back must not receive all messages at one moment.
    return timedelta(seconds=seconds * random.uniform(0.8, 1.2))  # noqa: S311


def _claim(webhook_id: int, now: datetime) -> bool:
    free = Q(busy_until=None) | Q(busy_until__lte=now)
    rested = Q(rests_until=None) | Q(rests_until__lte=now)
    rows = Webhook.objects.filter(free, rested, pk=webhook_id)
    return rows.update(busy_until=now + LEASE) == 1


def _due(now: datetime) -> "QuerySet[Delivery]":
    rested = Q(webhook__rests_until=None) | Q(webhook__rests_until__lte=now)
    wanted = Q(webhook__active=True) | Q(kind=outbox.TEST)
    waiting = Delivery.objects.filter(state=Delivery.State.WAITING, next_at__lte=now)
    return waiting.filter(rested, wanted)


def _send_due(hook: Webhook, began: datetime) -> int:
    arrived = 0
    for delivery in _due(began).filter(webhook=hook).order_by("created_at", "pk")[:BATCH]:
        delivered, down = _try(hook, delivery)
        arrived += delivered
        if down or timezone.now() - began > BUDGET:
            break
    return arrived


def _try(hook: Webhook, delivery: Delivery) -> tuple[bool, bool]:
    """Send one message; return whether it succeeded, and whether its receiver is down."""
    now = timezone.now()
    delivery.tries += 1
    delivery.status, delivery.error, refused = None, "", False
    try:
        delivery.status, answer = _attempt(hook, delivery, now)
        if not _is_good(delivery.status):
            # PostgreSQL stores no NUL.
            delivery.error = f"{delivery.status}: {answer}".replace("\0", "?")[:_ERROR]
            refused = delivery.status < HTTPStatus.INTERNAL_SERVER_ERROR
    except (outbound.AddressRejected, outbound.AddressUnreachable, NoSecret) as error:
        delivery.error = str(error).replace("\0", "?")[:_ERROR]
    except Exception as error:
        # Whatever an address or an answer causes is a failed attempt, which waits for its next one.
        logger.exception("webhook %d: the attempt failed", hook.pk)
        delivery.error = f"The attempt failed: {type(error).__name__}"
    delivered = _is_good(delivery.status)
    _save(hook, delivery, delivered=delivered, down=not delivered and not refused)
    return delivered, not delivered and not refused


def _attempt(hook: Webhook, delivery: Delivery, now: datetime) -> tuple[int, str]:
    """Send a message in the format of its receiver; return the status and the answer."""
    event = str(delivery.event)
    if hook.format == formats.EMAIL:
        send_mail(hook.url, event, delivery.body)
        return HTTPStatus.OK, ""
    credential = named_secret(SecretOf.WEBHOOKS, hook.credential) if hook.credential else ""
    body = formats.rendered(hook.format, delivery.body, credential)
    # Resolved again: the addresses of the name may have changed since the registration.
    target = outbound.resolved(hook.url)
    headers = {"Content-Type": "application/json", "User-Agent": "Weir-Webhooks/1"}
    headers |= webhooks.signed(hook, event, body, now)
    if credential and hook.format != formats.PAGERDUTY:
        headers["Authorization"] = f"Bearer {credential}"
    return outbound.post(target, headers, body.encode())


def _is_good(status: int | None) -> bool:
    return status is not None and HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES


def _save(hook: Webhook, delivery: Delivery, *, delivered: bool, down: bool) -> None:
    now = timezone.now()
    if delivered:
        delivery.state, delivery.delivered_at = Delivery.State.DELIVERED, now
    elif delivery.tries >= MAX_TRIES:
        delivery.state = Delivery.State.FAILED
    else:
        delivery.next_at = now + retry_delay(delivery.tries)
    delivery.save()
    rows = Webhook.objects.filter(pk=hook.pk)
    if down:
        hook.failures += 1
        rests_until = now + retry_delay(hook.failures)
        rows.update(failures=F("failures") + 1, rests_until=rests_until)
    elif hook.failures:
        hook.failures = 0
        rows.update(failures=0, rests_until=None)
