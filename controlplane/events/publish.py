"""Publication of events to browsers (channel layer) and to webhooks.

Pages of a cluster are in the group of the cluster, pages of all clusters in the group `FLEET`.
"""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, TypedDict

from channels.layers import get_channel_layer
from django.utils import timezone

from controlplane.events import event_loop, outbox
from controlplane.events.after_commit import after_commit

# The channel-layer group of the pages of all clusters.
FLEET: Final = "fleet"


class Event(TypedDict):
    """An event for browsers; `kind`: routing, proposal or state; `t`: ms since the epoch.

    `version`: of a routing version; `proposal`: the proposal that it executes, if any.
    """

    t: int
    kind: str
    version: int | None
    proposal: int | None
    text: str
    url: str | None
    id: int | None
    state: str | None
    severity: str | None


def group(cluster_id: int) -> str:
    """Return the channel-layer group of a cluster."""
    return f"cluster.{cluster_id}"


def event(
    kind: str,
    text: str,
    *,
    version: int | None = None,
    proposal: int | None = None,
    url: str | None = None,
    pk: int | None = None,
    state: str | None = None,
    severity: str | None = None,
) -> Event:
    """Return an event with the present time."""
    now = int(timezone.now().timestamp() * 1000)
    return Event(
        t=now, kind=kind, version=version, proposal=proposal, text=text, url=url, id=pk,
        state=state, severity=severity,
    )  # fmt: skip


def announce(cluster_id: int, event: Event, *, passing: bool = False) -> None:
    """Publish an event after the commit, and store its messages to webhooks in the transaction.

    Errors of Redis are logged, not raised. `passing`: transient, such as progress; webhooks do not
    receive it.
    """
    if not passing:
        outbox.enqueue(cluster_id, event)
    after_commit("notify the browsers", partial(_send_event, cluster_id, event))


def sample_message(sample: Mapping[str, Any]) -> dict[str, str]:
    """Return the message that sends a sample to the browsers of a cluster.

    `text`: its JSON, encoded once for all sockets; numbers have six significant digits, which is
    more than a chart shows.
    """
    rounded = {name: _rounded(value) for name, value in sample.items()}
    text = json.dumps({"type": "sample", "sample": rounded}, separators=(",", ":"))
    return {"type": "cluster.sample", "text": text}


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.6g}")
    return [_rounded(part) for part in value] if isinstance(value, list) else value


def send_samples(cluster_id: int, samples: list[dict[str, Any]]) -> None:
    """Send samples to the browsers immediately; pages of all clusters receive the newest time."""
    for sample in samples:
        _send(group(cluster_id), sample_message(sample))
    if samples:
        newest = max(sample["t"] for sample in samples)
        _send(FLEET, {"type": "fleet.sample", "cluster": cluster_id, "t": newest})


def _send_event(cluster_id: int, event: Event) -> None:
    _send(group(cluster_id), {"type": "cluster.event", "event": event})
    _send(FLEET, {"type": "fleet.event", "cluster": cluster_id, "event": event})


def _send(name: str, message: dict[str, Any]) -> None:
    layer = get_channel_layer()
    if layer is not None:
        event_loop.run(layer.group_send(name, message))
