"""Lists of webhooks' messages, and a summary per webhook."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count, OuterRef, Subquery

from controlplane.models import Delivery, Webhook
from controlplane.pagination.listing import Filters, Listing, choice_filter

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
