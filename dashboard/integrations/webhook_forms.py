"""The form of a webhook: event types, permitted clusters, parsing."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from django.http import QueryDict

from controlplane.access.roles import ADMIN, Actor
from controlplane.errors import Invalid
from controlplane.integrations import webhooks
from controlplane.integrations.deliveries import HookSummary
from controlplane.integrations.webhooks import WebhookSpec
from controlplane.models import Cluster, Webhook

# The kinds of events with their descriptions.
KINDS: Final = (
    ("proposals", "Proposals: a plan is ready, approved, rejected or stale"),
    ("executions", "Executions: start, pause, end or failure"),
    ("alerts", "Alerts: problems and decisions of monitors"),
)
# Longer than the limits of names and URLs, so that the service reports the error.
_LONGEST: Final = 1000


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
    return WebhookSpec(*_texts(values), tuple(values.getlist("kinds")), cluster)


def changed_spec(values: QueryDict, hook: Webhook) -> WebhookSpec:
    """Return a webhook with name, URL and kinds of a form."""
    name, url = _texts(values)
    kinds = tuple(values.getlist("kinds"))
    return replace(webhooks.spec_of(hook), name=name, url=url, kinds=kinds)


def sent(values: QueryDict) -> Mapping[str, Any]:
    """Return the submitted values of a form."""
    name, url = _texts(values)
    cluster = values.get("cluster", "")
    return {"name": name, "url": url, "cluster": cluster, "kinds": values.getlist("kinds")}


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


def _texts(values: QueryDict) -> tuple[str, str]:
    return values.get("name", "")[:_LONGEST], values.get("url", "").strip()[:_LONGEST]
