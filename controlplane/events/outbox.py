"""Messages to webhooks, written in the transaction of the event.

Transactional outbox: an event is stored with its change, and integrations.deliveries sends it at
least once.
"""

import json
import uuid
from collections.abc import Mapping
from typing import Any, Final

from django.db.models import Q
from django.utils import timezone

from controlplane.events.task_names import SEND_WEBHOOK, send_on_commit
from controlplane.models import Cluster, Delivery, Proposal, Webhook

Kind = Webhook.Kind
_State = Proposal.State
# The webhook subscription of each kind of event; for proposals also by state.
_KINDS: Final[Mapping[str, frozenset[str]]] = {
    "execution": frozenset({Kind.EXECUTIONS}),
    "decision": frozenset({Kind.ALERTS}),
    "alert": frozenset({Kind.ALERTS}),
}
_OF_EXECUTION: Final = frozenset(
    {*Proposal.ACTIVE, _State.DONE, _State.STOPPED, _State.ROLLED_BACK}
)
_OF_BOTH: Final = frozenset({_State.FAILED, _State.STALE})
TEST: Final = "test"


def enqueue(cluster_id: int, event: Mapping[str, Any]) -> int:
    """Store an event for each subscribed webhook; return how many."""
    kinds = _kinds(event)
    if not kinds:
        return 0
    active = Webhook.objects.filter(Q(cluster=None) | Q(cluster=cluster_id), active=True)
    hooks = [hook for hook in active if kinds & set(hook.kinds)]
    if not hooks:
        return 0
    slug = Cluster.objects.values_list("slug", flat=True).get(pk=cluster_id)
    state = f".{event['state']}" if event.get("state") else ""
    data = {name: event.get(name) for name in ("id", "state", "text", "url", "version", "severity")}
    write(hooks, f"{event['kind']}{state}".replace(" ", "_"), {"cluster": slug} | data)
    return len(hooks)


def write(hooks: list[Webhook], kind: str, data: Mapping[str, Any]) -> list[Delivery]:
    """Store an event for these webhooks, and send it after the commit."""
    now, event = timezone.now(), uuid.uuid4()
    message = {"id": str(event), "type": kind, "timestamp": now.isoformat(), "data": dict(data)}
    body = json.dumps(message, separators=(",", ":"))
    rows = Delivery.objects.bulk_create(
        Delivery(webhook=hook, event=event, kind=kind[:20], body=body, next_at=now, created_at=now)
        for hook in hooks
    )
    for hook in hooks:
        send_on_commit(SEND_WEBHOOK, hook.pk)
    return rows


def _kinds(event: Mapping[str, Any]) -> frozenset[str]:
    if event["kind"] != "proposal":
        return _KINDS.get(event["kind"], frozenset())
    if event["state"] in _OF_BOTH:
        return frozenset({Kind.PROPOSALS, Kind.EXECUTIONS})
    return frozenset({Kind.EXECUTIONS if event["state"] in _OF_EXECUTION else Kind.PROPOSALS})
