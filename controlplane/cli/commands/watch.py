"""weir watch and tail: the events of a cluster, and the windows of a query as they change."""

import time
from argparse import Namespace
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.utils import timezone

from controlplane.catalog.queries import query_by_name
from controlplane.cli.actors import viewed
from controlplane.cli.codes import Code
from controlplane.cli.output import console, print_json
from controlplane.cli.proposal_rows import execution_row
from controlplane.models import Cluster, Proposal, RoutingVersion
from controlplane.proposals.listing import proposal_by_id
from controlplane.results.feed import FeedEvent, FeedPlace, event_row, feed_events, feed_start
from controlplane.results.values import KeyedWindow
from controlplane.telemetry.time_series import latest_values
from controlplane.wire.figures import figure_of

Event = dict[str, Any]
# Of a burst of versions between two looks, the newest; the others are counted.
MOST_VERSIONS = 20
_LONGEST_S: Final = 20.0


@dataclass(frozen=True)
class ClusterObservation:
    """An observation: states of proposals by id, and progress of the watched proposal."""

    time: datetime
    cluster: Cluster
    sample: Mapping[str, Any] | None
    proposals: Mapping[int, str]
    execution: Mapping[str, Any] | None


def observe(cluster_id: int, proposal_id: int | None) -> ClusterObservation:
    """Return an observation of a cluster."""
    cluster = Cluster.objects.get(pk=cluster_id)
    recent = cluster.proposals.order_by("-id")[:50]
    states = dict(recent.values_list("id", "state"))
    execution = None
    if proposal_id is not None:
        proposal = Proposal.objects.filter(pk=proposal_id).first()
        states = {} if proposal is None else {proposal.pk: proposal.state}
        execution = None if proposal is None else execution_row(proposal)
    return ClusterObservation(timezone.now(), cluster, latest_values(cluster), states, execution)


def events_since(before: ClusterObservation | None, now: ClusterObservation) -> Iterator[Event]:
    """Yield the events since the last observation, which is None at first."""
    state, detail = now.cluster.state, now.cluster.state_detail
    if before is None or (before.cluster.state, before.cluster.state_detail) != (state, detail):
        yield _event(now, "state", f"{state} {detail}".strip(), state=state)
    if before is not None and before.cluster.routing_version < now.cluster.routing_version:
        yield from _versions(before, now)
    for pk, state in sorted(now.proposals.items()):
        if before is not None and before.proposals.get(pk) != state:
            yield _event(now, "proposal", f"proposal {pk} is {state}", id=pk, state=state)
    if now.execution is not None and (before is None or before.execution != now.execution):
        going = now.execution
        text = f"{going['done']} of {going['of']} actions, {going['cap_reason']}"
        text += f"; waits: {going['waits']}" if going["waits"] else ""
        yield _event(now, "execution", text, **going)
    if now.sample and (before is None or before.sample != now.sample):
        yield _event(now, "sample", _sentence(now.sample), sample=dict(now.sample))


def _versions(before: ClusterObservation, now: ClusterObservation) -> Iterator[Event]:
    rows = RoutingVersion.objects.filter(
        cluster=now.cluster,
        version__gt=before.cluster.routing_version,
        version__lte=now.cluster.routing_version,
    ).order_by("-version")
    newest = list(rows.values_list("version", "reason")[:MOST_VERSIONS])
    for version, reason in reversed(newest):
        yield _event(now, "routing", f"{version}: {reason}", version=version)


def _sentence(sample: Mapping[str, Any]) -> str:
    parts = [
        figure_of(name).text(value)
        for name in ("in", "rf", "imbalance", "p95")
        if (value := sample.get(name)) is not None
    ]
    return ", ".join(parts) or "no figures"


def _event(now: ClusterObservation, kind: str, text: str, **more: Any) -> Event:
    return {"at": now.time, "kind": kind, "text": text, **more}


# States that a proposal does not leave automatically, and the exit code of each.
_ENDS: Final[Mapping[str, Code]] = {
    Proposal.State.DONE: Code.DONE,
    Proposal.State.ROLLED_BACK: Code.DONE,
    Proposal.State.STOPPED: Code.REFUSED,
    Proposal.State.REJECTED: Code.REFUSED,
    Proposal.State.STALE: Code.REFUSED,
    Proposal.State.FAILED: Code.REFUSED,
    Proposal.State.SUPERSEDED: Code.REFUSED,
}


def watch_cluster(given: Namespace) -> int:
    """Print events until the proposal has ended, the time limit, or Ctrl-C."""
    _, cluster = viewed(given)
    if given.proposal is not None:
        proposal_by_id(cluster, given.proposal)
    seen: ClusterObservation | None = None
    for now in _observations(cluster, given):
        for event in events_since(seen, now):
            _print(given, event, f"{event['at']:%H:%M:%S}  {event['kind']:<9}", event["text"])
        seen = now
        code = _ENDS.get(now.proposals.get(given.proposal, ""))
        if code is not None:
            return code
    # A cluster is watched as long as was asked for; a proposal should have ended by then.
    return Code.DONE if given.proposal is None else Code.WAITED


def _observations(cluster: Cluster, given: Namespace) -> Iterator[ClusterObservation]:
    for _ in _moments(given):
        yield observe(cluster.pk, given.proposal)


def _moments(given: Namespace) -> Iterator[None]:
    """Yield at once and after each pause, until the time limit."""
    until = None if given.seconds is None else time.monotonic() + given.seconds
    while True:
        yield
        if until is not None and time.monotonic() >= until:
            return
        time.sleep(min(_LONGEST_S, max(0.05, given.every)))


def _print(given: Namespace, values: Mapping[str, Any], head: str, text: str) -> None:
    if given.json:
        print_json(values, line=True)
        return
    terminal = console()
    terminal.print(head, end=" ", style="bold", markup=False)
    terminal.print(text, markup=False, soft_wrap=True)


def tail_query(given: Namespace) -> None:
    """Print the events of a query's windows until it has ended, the time limit, or Ctrl-C."""
    _, cluster = viewed(given)
    query = query_by_name(cluster, given.query)
    place = FeedPlace.read(given.after) if given.after else feed_start(cluster, query)
    for _ in _moments(given):
        events, place = feed_events(cluster, query, place, is_final_only=given.final_only)
        for event in events:
            values = {"event": event.kind, "id": str(event.place), **event_row(event)}
            _print(given, values, f"{event.kind:<10}", _window_text(event))
        if events and events[-1].kind == "ended":
            return


def _window_text(event: FeedEvent) -> str:
    if event.window is None:
        return {"gap": "changes were missed; final windows were not"}.get(
            event.kind, "the query has ended"
        )
    window = event.window
    key = " ".join(f"{name}={value}" for name, value in window.key.items())
    values = " ".join(f"{name}={value}" for name, value in window.values.items())
    return f"{window.start:%Y-%m-%d %H:%M:%S}  {key}  {values}{_sample_text(window)}"


def _sample_text(window: KeyedWindow) -> str:
    """Return what was kept of a window and its estimates, empty if all records were kept."""
    if window.kept == 1:
        return ""
    kept = "not counted" if window.kept is None else f"{window.kept:.4g}"
    estimates = [
        f"{name}\N{ALMOST EQUAL TO}{value:.6g}"
        + ("" if low is None or high is None else f" ({low:.6g} to {high:.6g})")
        for name, (value, low, high) in window.estimates.items()
    ]
    return "  ".join(["", f"kept {kept}", *estimates])
