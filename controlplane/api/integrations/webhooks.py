"""Endpoints of webhooks and their messages."""

from datetime import datetime
from typing import Any, Literal

from django.http import HttpRequest, HttpResponse
from ninja import Router, Status
from pydantic import Field

from controlplane.access.roles import Actor
from controlplane.api.common.lists import list_parameters, listed
from controlplane.api.common.schemas import (
    RequestBody,
    SecretOut,
    below,
    columns_of,
    list_of,
    shown,
)
from controlplane.api.common.security import caller, open_to
from controlplane.clusters.audiences import webhook_managers
from controlplane.clusters.listing import visible_cluster
from controlplane.integrations import deliveries, webhooks
from controlplane.integrations.deliveries import DeliveryFilters, deliveries_listing
from controlplane.integrations.webhooks import WebhookSpec
from controlplane.models import Delivery, Webhook

router = Router(tags=["webhooks"], auth=open_to(webhook_managers))


class WebhookIn(RequestBody):
    """A webhook: a public https URL, its event types, and its cluster (null: all).

    format: of its receiver; email: the URL is mailto: with addresses. credential: the name of a
    secret of the site: PagerDuty's routing key, or a token that is sent as Bearer.
    """

    name: str = Field(max_length=webhooks.MAX_NAME)
    url: str = Field(max_length=500)
    kinds: list[str] = Field(
        default_factory=lambda: list(webhooks.KINDS), max_length=len(webhooks.KINDS)
    )
    cluster: str | None = None
    active: bool = True
    format: Literal["weir", "slack", "teams", "pagerduty", "alertmanager", "email"] = "weir"
    credential: str = Field("", max_length=60)


class WebhookOut(
    columns_of(  # type: ignore[misc]
        Webhook,
        "id name url format credential active failures rests_until created_by created_at",
        kinds=list[str],
    )
):
    """A webhook without its secret; after consecutive failures it is paused until a moment."""

    cluster: str | None = below("cluster.slug")


class NewWebhookOut(SecretOut):
    """A new webhook with the secret that signs its messages."""

    webhook: WebhookOut


class DeliveryOut(
    columns_of(Delivery, "id event kind state tries status error created_at delivered_at body")  # type: ignore[misc]
):
    """A message; event is its id, the same at every attempt. next_at: the next attempt."""

    model_config = shown("id kind state tries status error")

    next_at: datetime | None

    @staticmethod
    def resolve_next_at(row: Delivery) -> datetime | None:
        """Return the next attempt, None for a finished message."""
        return row.next_at if row.state == Delivery.State.WAITING else None


DeliveryPage = list_of("DeliveryPage", deliveries=DeliveryOut)


@router.get("", response=list[WebhookOut])
def list_webhooks(request: HttpRequest) -> Any:
    """Return the webhooks that the caller can manage by name, at most fifty."""
    return webhooks.visible_webhooks(caller(request))


@router.post("", response={201: NewWebhookOut})
def make_webhook(request: HttpRequest, body: WebhookIn) -> Any:
    """Create a webhook. Requires the role admin, on its cluster or on all.

    Private, loopback, link-local and metadata addresses are refused, now and at every message.
    """
    actor = caller(request)
    hook = webhooks.create(actor, _spec(actor, body))
    return Status(201, {"webhook": hook, "secret": webhooks.secret_of(hook)})


@router.get("/{int:pk}", response=WebhookOut)
def get_webhook(request: HttpRequest, pk: int) -> Any:
    """Return one webhook."""
    return webhooks.webhook_by_id(caller(request), pk)


@router.put("/{int:pk}", response=WebhookOut)
def change_webhook(request: HttpRequest, pk: int, body: WebhookIn) -> Any:
    """Change all fields of a webhook except its cluster; a pause ends."""
    actor = caller(request)
    return webhooks.change(actor, webhooks.webhook_by_id(actor, pk), _spec(actor, body))


@router.delete("/{int:pk}", response={204: None})
def remove_webhook(request: HttpRequest, pk: int) -> Any:
    """Delete a webhook with its messages."""
    actor = caller(request)
    webhooks.remove(actor, webhooks.webhook_by_id(actor, pk))
    return Status(204, None)


@router.post("/{int:pk}/secret", response=NewWebhookOut)
def renew_secret(request: HttpRequest, pk: int) -> Any:
    """Replace the secret of a webhook, which signs every message from now on."""
    actor = caller(request)
    hook = webhooks.renew_secret(actor, webhooks.webhook_by_id(actor, pk))
    return {"webhook": hook, "secret": webhooks.secret_of(hook)}


@router.post("/{int:pk}/test", response={202: DeliveryOut})
def test_webhook(request: HttpRequest, pk: int) -> Any:
    """Send a message of type test; its delivery has the outcome."""
    actor = caller(request)
    return Status(202, webhooks.test(actor, webhooks.webhook_by_id(actor, pk)))


@router.get(
    "/{int:pk}/deliveries", response=DeliveryPage,
    openapi_extra=list_parameters(DeliveryFilters),
)  # fmt: skip
def list_deliveries(request: HttpRequest, response: HttpResponse, pk: int) -> Any:
    """List the messages of a webhook, newest first; finished messages are kept a week.

    Query parameters state (waiting, delivered, failed), cursor, limit (up to 1000).
    """
    hook = webhooks.webhook_by_id(caller(request), pk)
    listing = deliveries_listing(hook, DeliveryFilters.of(request.GET))
    return listed(request, response, listing, "deliveries")


@router.post("/{int:pk}/deliveries/{int:delivery}/again", response={202: DeliveryOut})
def send_again(request: HttpRequest, pk: int, delivery: int) -> Any:
    """Send a message now, again or before its next attempt; its id does not change.

    409 (webhook_off) for a webhook that is switched off.
    """
    actor = caller(request)
    return Status(202, deliveries.send_again(actor, webhooks.webhook_by_id(actor, pk), delivery))


def _spec(actor: Actor, body: WebhookIn) -> WebhookSpec:
    cluster = None if body.cluster is None else visible_cluster(actor, body.cluster)
    return WebhookSpec(
        body.name, body.url, tuple(body.kinds), cluster, body.active, body.format, body.credential
    )
