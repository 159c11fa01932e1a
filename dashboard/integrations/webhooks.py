"""Pages of webhooks: list, creation, and one webhook with its messages."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from controlplane.errors import Fields, Forbidden, Invalid, NotFound, WeirError
from controlplane.integrations import deliveries, webhooks
from controlplane.integrations.delivery_list import (
    STATES,
    DeliveryFilters,
    deliveries_listing,
    hook_summaries,
)
from controlplane.models import Webhook
from dashboard.guards import PageRequest, anyone_page
from dashboard.integrations.webhook_forms import (
    KINDS,
    changed_spec,
    new_spec,
    places_of,
    sent,
    webhook_form,
)
from dashboard.responses import notify, notify_refusal, render_list, render_page

PER_PAGE = 20


@anyone_page
def index(request: PageRequest) -> HttpResponse:
    """Render the webhooks that the actor manages, or a page without them."""
    try:
        return _list_page(request, {})
    except Forbidden:
        return render_page(request, "webhooks.html", {"manages": False})


@never_cache
@require_POST
@anyone_page
def add(request: PageRequest) -> HttpResponse:
    """Create a webhook; only this response has its secret."""
    # A missing role takes precedence over errors of fields.
    webhooks.visible_webhooks(request.actor)
    try:
        spec = new_spec(request.POST, places_of(request.actor))
        hook = webhooks.create(request.actor, spec)
    except Invalid as invalid:
        more = {"errors": invalid.fields, "values": sent(request.POST)}
        return _list_page(request, more, 422)
    except Forbidden:
        raise
    except WeirError as refusal:
        notify_refusal(request, refusal)
        return redirect("webhooks")
    return _hook_page(request, hook, {"secret": webhooks.secret_of(hook), "is_new": True}, 201)


@anyone_page
def detail(request: PageRequest, pk: int) -> HttpResponse:
    """Show one webhook with its newest messages."""
    hook = webhooks.webhook_by_id(request.actor, pk)
    context = _hook_context(request, hook)
    return render_list(request, "webhook.html", "_webhook_live.html", context)


@require_POST
@anyone_page
def change(request: PageRequest, pk: int) -> HttpResponse:
    """Change name, URL and kinds."""
    hook = webhooks.webhook_by_id(request.actor, pk)
    try:
        webhooks.change(request.actor, hook, changed_spec(request.POST, hook))
    except Invalid as invalid:
        return _hook_page(request, hook, {"values": sent(request.POST)}, 422, invalid.fields)
    notify(request, f"{hook.name} was changed.")
    return redirect("webhook", pk)


@never_cache
@require_POST
@anyone_page
def renew_secret(request: PageRequest, pk: int) -> HttpResponse:
    """Replace the secret; only this response has it."""
    hook = webhooks.renew_secret(request.actor, webhooks.webhook_by_id(request.actor, pk))
    return _hook_page(request, hook, {"secret": webhooks.secret_of(hook)})


@require_POST
@anyone_page
def switch(request: PageRequest, pk: int) -> HttpResponseRedirect:
    """Activate or deactivate a webhook."""

    def switched(hook: Webhook) -> str:
        active = request.POST.get("active") == "1"
        webhooks.change(request.actor, hook, replace(webhooks.spec_of(hook), active=active))
        return f"{hook.name} is {'on' if active else 'off'}."

    return _done(request, pk, switched)


@require_POST
@anyone_page
def test(request: PageRequest, pk: int) -> HttpResponseRedirect:
    """Send a message of type test."""

    def tested(hook: Webhook) -> str:
        webhooks.test(request.actor, hook)
        return "A test message was sent: its result appears below."

    return _done(request, pk, tested)


@require_POST
@anyone_page
def again(request: PageRequest, pk: int, delivery: int) -> HttpResponseRedirect:
    """Send a message now, again or before its next attempt."""

    def sent_again(hook: Webhook) -> str:
        row = deliveries.send_again(request.actor, hook, delivery)
        return f"The message {row.kind} was sent."

    return _done(request, pk, sent_again)


@require_POST
@anyone_page
def remove(request: PageRequest, pk: int) -> HttpResponseRedirect:
    """Delete a webhook with its messages."""
    hook = webhooks.webhook_by_id(request.actor, pk)
    webhooks.remove(request.actor, hook)
    notify(request, f"{hook.name} was removed; it receives no more messages.")
    return redirect("webhooks")


def _done(request: PageRequest, pk: int, act: Callable[[Webhook], str]) -> HttpResponseRedirect:
    hook = webhooks.webhook_by_id(request.actor, pk)
    try:
        notify(request, act(hook))
    except (Forbidden, NotFound):
        raise
    except WeirError as refusal:
        notify_refusal(request, refusal)
    return redirect("webhook", pk)


def _list_page(request: PageRequest, more: dict[str, Any], status: int = 200) -> HttpResponse:
    now, errors = timezone.now(), Fields()
    hooks = list(webhooks.visible_webhooks(request.actor))
    context = {
        "manages": True,
        "rows": [webhook_form(hook_summary, now) for hook_summary in hook_summaries(hooks)],
        "places": places_of(request.actor),
        "kinds": KINDS,
        "values": {"kinds": webhooks.KINDS},
        "errors": errors,
    }
    if request.htmx and not request.htmx.boosted:
        return render_page(request, "_webhooks_table.html", context)
    return render_page(request, "webhooks.html", context | more, status)


def _hook_page(
    request: PageRequest,
    hook: Webhook,
    more: dict[str, Any],
    status: int = 200,
    errors: Fields | None = None,
) -> HttpResponse:
    context = _hook_context(request, hook) | {"errors": errors or {}} | more
    return render_page(request, "webhook.html", context, status)


def _hook_context(request: PageRequest, hook: Webhook) -> dict[str, Any]:
    filters = DeliveryFilters.of({"per_page": PER_PAGE} | request.GET.dict())
    now = timezone.now()
    return {
        "now": now,
        "row": webhook_form(hook_summaries([hook])[0], now),
        "page": deliveries_listing(hook, filters).page,
        "state": filters.state,
        "states": STATES,
        "kinds": KINDS,
        "most_tries": deliveries.MAX_TRIES,
        "values": {"name": hook.name, "url": hook.url, "kinds": hook.kinds},
        "errors": {},
    }
