"""Messages in the formats of their receivers, from the message of Weir that is stored.

Slack: incoming webhooks. Teams: a card for a workflow's webhook. PagerDuty: Events API v2, in which
a problem has one `dedup_key` until it is resolved. Alertmanager: `POST /api/v2/alerts`.
"""

import json
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings

Message = Mapping[str, Any]
# The last states: what they are about needs nobody any more.
_RESOLVED: Final = frozenset(
    {"cleared", "done", "rejected", "withdrawn", "cancelled", "rolled_back", "stale"}
)
_SEEN: Final = frozenset({"acknowledged", "silenced"})
_ERRORS: Final = frozenset({"failed", "stopped"})
# When Alertmanager forgets an alert that is not resolved, and any other event.
_LASTS: Final = {"alert": timedelta(days=30)}
_EVENT_LASTS: Final = timedelta(hours=1)
_SUMMARY: Final = 1024


def weir_message(message: Message, _: str) -> Any:
    """Return the message as docs/api.md has it."""
    return message


def slack_message(message: Message, _: str) -> Any:
    """Return a text in Slack's marks."""
    text = f"*{_slack(_title(message))}*\n{_slack(message['data']['text'])}"
    link = link_of(message)
    return {"text": f"{text}\n<{link}|Open in Weir>" if link else text}


def teams_message(message: Message, _: str) -> Any:
    """Return an adaptive card."""
    link = link_of(message)
    actions = [{"type": "Action.OpenUrl", "title": "Open in Weir", "url": link}] if link else []
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [
            {"type": "TextBlock", "text": _title(message), "weight": "Bolder", "wrap": True},
            {"type": "TextBlock", "text": message["data"]["text"], "wrap": True},
        ],
        "actions": actions,
    }
    content = {"contentType": "application/vnd.microsoft.card.adaptive", "content": card}
    return {"type": "message", "attachments": [content]}


def pagerduty_message(message: Message, credential: str) -> Any:
    """Return an event; `credential`: the routing key of the service."""
    state, link = _state(message), link_of(message)
    action = "resolve" if state in _RESOLVED else "acknowledge" if state in _SEEN else "trigger"
    return {
        "routing_key": credential,
        "event_action": action,
        "dedup_key": _problem(message),
        "client": "Weir",
        "payload": {
            "summary": f"{_title(message)}: {message['data']['text']}"[:_SUMMARY],
            "source": message["data"].get("cluster") or "weir",
            "severity": _severity(message),
            "timestamp": message["timestamp"],
            "class": message["type"],
        },
        "links": [{"href": link, "text": "Open in Weir"}] if link else [],
    }


def alertmanager_message(message: Message, _: str) -> Any:
    """Return a list of one alert; its labels are the same when it is resolved."""
    kind, moment = message["type"].partition(".")[0], datetime.fromisoformat(message["timestamp"])
    is_resolved = _state(message) in _RESOLVED
    alert = {
        "labels": {
            "alertname": f"weir_{kind}",
            "cluster": message["data"].get("cluster") or "",
            "problem": _problem(message),
        },
        "annotations": {"summary": message["data"]["text"], "type": message["type"]},
        "endsAt": message["timestamp"],
        "generatorURL": link_of(message),
    }
    if not is_resolved:
        ends_at = moment + _LASTS.get(kind, _EVENT_LASTS)
        alert |= {"startsAt": message["timestamp"], "endsAt": ends_at.isoformat()}
    return [alert]


# By name; e-mail has text instead of JSON (`mail`).
WEIR: Final = "weir"
PAGERDUTY: Final = "pagerduty"
EMAIL: Final = "email"
FORMATS: Final[Mapping[str, Callable[[Message, str], Any]]] = {
    WEIR: weir_message,
    "slack": slack_message,
    "teams": teams_message,
    PAGERDUTY: pagerduty_message,
    "alertmanager": alertmanager_message,
}
NAMES: Final = (*FORMATS, EMAIL)


def rendered(name: str, body: str, credential: str) -> str:
    """Return the body of the request for the stored message of Weir."""
    return body if name == WEIR else json.dumps(FORMATS[name](json.loads(body), credential))


def example(name: str) -> str:
    """Return the body that a receiver gets of an alert, for reading."""
    data = {
        "cluster": "orders", "id": 7, "state": "firing", "severity": "warning", "version": None,
        "text": "Orders, Latency p95 above limit: 12.3 s, limit 10.0 s",
        "url": "/clusters/orders/alerts/7/",
    }  # fmt: skip
    body = json.dumps({
        "id": "0a5fd0be-8a4f-4d53-9c1c-7f0c2d1f5a11", "type": "alert.firing",
        "timestamp": "2026-05-03T10:00:00+00:00", "data": data,
    })  # fmt: skip
    if name == EMAIL:
        return "\n\n".join(mail(body))
    return json.dumps(json.loads(rendered(name, body, "your routing key")), indent=2)


def mail(body: str) -> tuple[str, str]:
    """Return the subject and the text of an e-mail."""
    message: Message = json.loads(body)
    data = message["data"]
    text = "\n\n".join(filter(None, (data["text"], link_of(message), message["timestamp"])))
    return " ".join(f"[Weir] {_title(message)}: {data['text']}".split())[:200], f"{text}\n"


def link_of(message: Message) -> str:
    """Return the address of an event's page, "" if the site names no origin of its pages."""
    url, origins = message["data"].get("url"), settings.CSRF_TRUSTED_ORIGINS
    return f"{origins[0].rstrip('/')}{url}" if url and origins else ""


def _title(message: Message) -> str:
    cluster = message["data"].get("cluster")
    kind = message["type"].replace(".", " ").replace("_", " ")
    return f"{cluster}: {kind}" if cluster else kind


def _state(message: Message) -> str:
    return str(message["type"].partition(".")[2])


def _problem(message: Message) -> str:
    """Return what all messages about one alert, proposal or execution have in common."""
    data, kind = message["data"], message["type"].partition(".")[0]
    identity = data.get("id")
    return f"weir-{data.get('cluster') or 'site'}-{kind}-{identity or message['id']}"


def _severity(message: Message) -> str:
    given = message["data"].get("severity")
    return str(given or ("error" if _state(message) in _ERRORS else "info"))


def _slack(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
