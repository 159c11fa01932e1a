"""Lists of webhooks' messages, and a summary per webhook."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Count, OuterRef, Subquery

from controlplane.models import Delivery, Webhook
from controlplane.pagination.cursors import Place, Slice, slice_of
from controlplane.pagination.pages import Page, one_of, page_of

STATES = tuple(str(state) for state in Delivery.State.values)
PER_PAGE: Final = 20


@dataclass(frozen=True)
class HookSummary:
    """A webhook, its newest message (None before the first), and how many wait to be sent."""

    hook: Webhook
    last: Delivery | None
    waiting: int


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


def deliveries_slice(hook: Webhook, values: Mapping[str, Any], place: Place) -> Slice[Delivery]:
    """Return the messages after a cursor, newest first; state "" is all. Raises `Invalid`."""
    deliveries = Delivery.objects.filter(webhook=hook)
    if state := one_of(values, "state", STATES):
        deliveries = deliveries.filter(state=state)
    return slice_of(deliveries, ("-created_at", "-pk"), place, list)


def deliveries_page(hook: Webhook, state: str, number: int) -> Page[Delivery]:
    """Return a page of messages, newest first; state "" is all."""
    deliveries = Delivery.objects.filter(webhook=hook).order_by("-created_at", "-pk")
    if state:
        deliveries = deliveries.filter(state=state)
    return page_of(deliveries, number, PER_PAGE, list)
