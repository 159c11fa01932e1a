"""Pages of webhooks: list, their form, and one webhook with its messages."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import wraps
from typing import Any, Final

from django.http import HttpResponse, HttpResponseBase, HttpResponseRedirect, QueryDict
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.cache import never_cache

from controlplane.access.roles import ADMIN, Actor
from controlplane.errors import Forbidden, Invalid, NotFound, WeirError
from controlplane.integrations import deliveries, formats, webhooks
from controlplane.integrations.deliveries import (
    STATES,
    DeliveryFilters,
    HookSummary,
    deliveries_listing,
    hook_summaries,
    newest_error,
)
from controlplane.integrations.webhooks import WebhookSpec
from controlplane.models import Cluster, Webhook
from dashboard.guards import PageRequest, anyone_action, anyone_page
from dashboard.integrations.tiles import webhook_tiles
from dashboard.lists import list_filters
from dashboard.responses import notify, notify_refusal, notify_refusals, render_list, render_page

PER_PAGE = 20
# The kinds of events with their descriptions.
KINDS: Final = (
    ("proposals", "Proposals: a plan is ready, approved, rejected or stale"),
    ("executions", "Executions: start, pause, end or failure"),
    ("alerts", "Alerts: problems and decisions of monitors"),
)
# The formats of receivers with their names.
FORMATS: Final = (
    ("weir", "Weir, signed"), ("slack", "Slack"), ("teams", "Microsoft Teams"),
    ("pagerduty", "PagerDuty"), ("alertmanager", "Alertmanager"), ("email", "E-mail"),
)  # fmt: skip
# Longer than the limits of names and URLs, so that the service reports the error.
_LONGEST: Final = 1000


@anyone_page
def index(request: PageRequest) -> HttpResponse:
    """Render the webhooks that the actor manages, or a page without them."""
    try:
        return _list_page(request, {})
    except Forbidden:
        context = {"manages": False, "examples": _examples()}
        return render_page(request, "webhooks.html", context)


@never_cache
@anyone_action
def add(request: PageRequest) -> HttpResponse:
    """Create a webhook; only this response has its secret."""
    # A missing role takes precedence over errors of fields.
    webhooks.visible_webhooks(request.actor)
    with notify_refusals(request):
        try:
            spec = new_spec(request.POST, places_of(request.actor))
            hook = webhooks.create(request.actor, spec)
        except Invalid as invalid:
            more = {"errors": invalid.fields, "values": sent(request.POST)}
            return _list_page(request, more, 422)
        secret = webhooks.secret_of(hook)
        return _hook_page(request, hook, {"secret": secret, "is_new": True}, 201)
    return redirect("webhooks")


@anyone_page
def detail(request: PageRequest, pk: int) -> HttpResponse:
    """Show one webhook with its newest messages."""
    hook = webhooks.webhook_by_id(request.actor, pk)
    context = _hook_context(request, hook)
    return render_list(request, "webhook.html", "_webhook_live.html", context)


@anyone_action
def change(request: PageRequest, pk: int) -> HttpResponse:
    """Change name, URL and kinds."""
    hook = webhooks.webhook_by_id(request.actor, pk)
    try:
        webhooks.change(request.actor, hook, changed_spec(request.POST, hook))
    except Invalid as invalid:
        more = {"values": sent(request.POST), "errors": invalid.fields}
        return _hook_page(request, hook, more, 422)
    notify(request, f"{hook.name} was changed.")
    return redirect("webhook", pk)


@never_cache
@anyone_action
def renew_secret(request: PageRequest, pk: int) -> HttpResponse:
    """Replace the secret; only this response has it."""
    hook = webhooks.renew_secret(request.actor, webhooks.webhook_by_id(request.actor, pk))
    return _hook_page(request, hook, {"secret": webhooks.secret_of(hook)})


def _webhook_change(change: Callable[..., str]) -> Callable[..., HttpResponseBase]:
    """Return the view of a change of a webhook, which returns a message for its page."""

    @wraps(change)
    @anyone_action
    def view(request: PageRequest, /, pk: int, **parts: Any) -> HttpResponse:
        hook = webhooks.webhook_by_id(request.actor, pk)
        try:
            notify(request, change(request, hook, **parts))
        except (Forbidden, NotFound):
            raise
        except WeirError as refusal:
            notify_refusal(request, refusal)
        return redirect("webhook", pk)

    return view


@_webhook_change
def switch(request: PageRequest, hook: Webhook) -> str:
    """Activate or deactivate a webhook."""
    active = request.POST.get("active") == "1"
    webhooks.change(request.actor, hook, replace(webhooks.spec_of(hook), active=active))
    return f"{hook.name} is {'on' if active else 'off'}."


@_webhook_change
def test(request: PageRequest, hook: Webhook) -> str:
    """Send a message of type test."""
    webhooks.test(request.actor, hook)
    return "A test message was sent: its result appears below."


@_webhook_change
def again(request: PageRequest, hook: Webhook, delivery: int) -> str:
    """Send a message now, again or before its next attempt."""
    row = deliveries.send_again(request.actor, hook, delivery)
    return f"The message {row.kind} was sent."


@anyone_action
def remove(request: PageRequest, pk: int) -> HttpResponseRedirect:
    """Delete a webhook with its messages."""
    hook = webhooks.webhook_by_id(request.actor, pk)
    webhooks.remove(request.actor, hook)
    notify(request, f"{hook.name} was removed; it receives no more messages.")
    return redirect("webhooks")


def _examples() -> list[tuple[str, str]]:
    """Return what each kind of receiver gets of an alert, by the name of its format."""
    return [(words, formats.example(name)) for name, words in FORMATS]


def _list_page(request: PageRequest, more: dict[str, Any], status: int = 200) -> HttpResponse:
    now = timezone.now()
    hooks = list(webhooks.visible_webhooks(request.actor))
    context = {
        "manages": True,
        "rows": [webhook_form(hook_summary, now) for hook_summary in hook_summaries(hooks)],
        "places": places_of(request.actor),
        "kinds": KINDS,
        "formats": FORMATS,
        "values": {"kinds": webhooks.KINDS},
        "examples": _examples(),
        "errors": {},
    }
    if request.htmx and not request.htmx.boosted:
        return render_page(request, "_webhooks_table.html", context)
    return render_page(request, "webhooks.html", context | more, status)


def _hook_page(
    request: PageRequest, hook: Webhook, more: dict[str, Any], status: int = 200
) -> HttpResponse:
    return render_page(request, "webhook.html", _hook_context(request, hook) | more, status)


def _hook_context(request: PageRequest, hook: Webhook) -> dict[str, Any]:
    filters = list_filters(request, DeliveryFilters, {"per_page": PER_PAGE})
    now = timezone.now()
    row = webhook_form(hook_summaries([hook])[0], now) | {"error": newest_error(hook)}
    return {
        "now": now,
        "row": row,
        "tiles": webhook_tiles(row),
        "page": deliveries_listing(hook, filters).page,
        "state": filters.state,
        "states": STATES,
        "kinds": KINDS,
        "most_tries": deliveries.MAX_TRIES,
        "formats": FORMATS,
        "values": {
            "name": hook.name,
            "url": hook.url,
            "kinds": hook.kinds,
            "format": hook.format,
            "credential": hook.credential,
        },
        "errors": {},
    }


@dataclass(frozen=True)
class Places:
    """The permitted clusters of an actor's webhooks, and whether all are permitted."""

    clusters: list[Cluster]
    everywhere: bool


def places_of(actor: Actor) -> Places:
    """Return the permitted clusters of the actor's webhooks."""
    everywhere = actor.may(ADMIN)
    clusters = [
        cluster for cluster in Cluster.objects.order_by("slug") if actor.may(ADMIN, cluster.pk)
    ]
    return Places(clusters, everywhere)


def new_spec(values: QueryDict, places: Places) -> WebhookSpec:
    """Return the webhook of a form. Raises `Invalid` for an unknown cluster."""
    slug = values.get("cluster", "")
    cluster = next((allowed for allowed in places.clusters if allowed.slug == slug), None)
    if cluster is None and (slug or not places.everywhere):
        raise Invalid({"cluster": ["Choose a cluster from the list"]})
    name, url = _texts(values)
    kinds = tuple(values.getlist("kinds"))
    return WebhookSpec(name, url, kinds, cluster, **_receiver(values))


def changed_spec(values: QueryDict, hook: Webhook) -> WebhookSpec:
    """Return a webhook with name, URL and kinds of a form."""
    name, url = _texts(values)
    kinds = tuple(values.getlist("kinds"))
    return replace(webhooks.spec_of(hook), name=name, url=url, kinds=kinds, **_receiver(values))


def sent(values: QueryDict) -> Mapping[str, Any]:
    """Return the submitted values of a form."""
    name, url = _texts(values)
    cluster = values.get("cluster", "")
    return {"name": name, "url": url, "cluster": cluster, "kinds": values.getlist("kinds"),
            **_receiver(values)}  # fmt: skip


def webhook_form(summary: HookSummary, now: datetime) -> dict[str, Any]:
    """Return a webhook for a row or a heading."""
    hook = summary.hook
    rests = hook.rests_until is not None and hook.rests_until > now and hook.active
    return {
        "hook": hook,
        "last": summary.last,
        "waiting": summary.waiting,
        "state": "off" if not hook.active else "not answering" if hook.failures else "on",
        "rests_until": hook.rests_until if rests else None,
    }


def _receiver(values: QueryDict) -> dict[str, Any]:
    return {name: values.get(name, default)[:_LONGEST]
            for name, default in (("format", "weir"), ("credential", ""))}  # fmt: skip


def _texts(values: QueryDict) -> tuple[str, str]:
    return values.get("name", "")[:_LONGEST], values.get("url", "").strip()[:_LONGEST]
