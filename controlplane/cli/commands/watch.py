"""weir watch and tail: the events of a cluster, and the windows of a query as they change."""

import time
from argparse import Namespace
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from controlplane.cli.client.api import Api, cluster_path, path_of
from controlplane.cli.client.connection import api_of
from controlplane.cli.codes import ExitCode
from controlplane.cli.output import console, print_json
from controlplane.cli.proposal_output import execution_values
from controlplane.plans.proposal_states import State
from controlplane.wire.figures import figure_of

Event = dict[str, Any]
# Of a burst of versions between two looks, the newest; the others are counted.
MOST_VERSIONS = 20
_PROPOSALS: Final = 50
_LONGEST_S: Final = 20.0
# States that a proposal does not leave automatically, and the exit code of each.
_ENDS: Final[Mapping[str, ExitCode]] = {
    State.DONE: ExitCode.DONE,
    State.ROLLED_BACK: ExitCode.DONE,
    State.STOPPED: ExitCode.REFUSED,
    State.REJECTED: ExitCode.REFUSED,
    State.STALE: ExitCode.REFUSED,
    State.FAILED: ExitCode.REFUSED,
    State.NO_BETTER_PLAN: ExitCode.REFUSED,
    State.SUPERSEDED: ExitCode.REFUSED,
}


@dataclass(frozen=True)
class WatchedCluster:
    """An observation: states of proposals by id, and progress of the watched proposal."""

    time: datetime
    cluster: Mapping[str, Any]
    sample: Mapping[str, Any] | None
    proposals: Mapping[int, str]
    execution: Mapping[str, Any] | None

    @property
    def state(self) -> tuple[str, str]:
        """Return the state of the cluster, and its detail."""
        return self.cluster["state"], self.cluster["state_detail"]

    @property
    def version(self) -> int:
        """Return the newest routing version."""
        return int(self.cluster["routing_version"])


def observe(api: Api, path: str, proposal: int | None) -> WatchedCluster:
    """Return an observation of the cluster with an address. Raises `Refused`."""
    cluster, sample = api.get(path), api.get(f"{path}/sample")
    if proposal is None:
        rows = api.get(f"{path}/proposals", limit=_PROPOSALS)["proposals"]
        states = {row["id"]: row["state"] for row in rows}
        return WatchedCluster(datetime.now(UTC), cluster, sample, states, None)
    # The execution first: a state that is read later is not older.
    execution = execution_values(api, f"{path}/proposals/{proposal}")
    state = api.get(f"{path}/proposals/{proposal}")["state"]
    return WatchedCluster(datetime.now(UTC), cluster, sample, {proposal: state}, execution)


def events_since(
    api: Api, path: str, before: WatchedCluster | None, now: WatchedCluster
) -> Iterator[Event]:
    """Yield the events since the last observation, which is None at first."""
    if before is None or before.state != now.state:
        yield _event(now, "state", " ".join(now.state).strip(), state=now.state[0])
    if before is not None and before.version < now.version:
        yield from _versions(api, path, before, now)
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


def _versions(api: Api, path: str, before: WatchedCluster, now: WatchedCluster) -> Iterator[Event]:
    rows = api.get(f"{path}/versions", limit=MOST_VERSIONS)["versions"]
    for row in reversed(rows):
        if before.version < row["version"] <= now.version:
            text = f"{row['version']}: {row['reason']}"
            yield _event(now, "routing", text, version=row["version"])


def _sentence(sample: Mapping[str, Any]) -> str:
    parts = [
        figure_of(name).text(value)
        for name in ("arrived", "rf", "imbalance", "p95")
        if (value := sample.get(name)) is not None
    ]
    return ", ".join(parts) or "no figures"


def _event(now: WatchedCluster, kind: str, text: str, **more: Any) -> Event:
    return {"at": now.time, "kind": kind, "text": text, **more}


def watch_cluster(given: Namespace) -> int:
    """Print events until the proposal has ended, the time limit, or Ctrl-C."""
    api, path = api_of(given), cluster_path(given)
    seen: WatchedCluster | None = None
    for _ in _moments(given):
        now = observe(api, path, given.proposal)
        for event in events_since(api, path, seen, now):
            _print(given, event, f"{event['at']:%H:%M:%S}  {event['kind']:<9}", event["text"])
        seen = now
        code = _ENDS.get(now.proposals.get(given.proposal, ""))
        if code is not None:
            return code
    # A cluster is watched as long as was asked for; a proposal should have ended by then.
    return ExitCode.DONE if given.proposal is None else ExitCode.WAITED


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
    api = api_of(given)
    path = path_of("/clusters/{cluster}/queries/{query}/feed", vars(given))
    only, after = "final" if given.final_only else "", given.after
    for _ in _moments(given):
        body = api.get(path, once=True, only=only, after=after)
        after = body["after"]
        for event in body["events"]:
            _print(given, event, f"{event['event']:<10}", _window_text(event))
        if body["events"] and body["events"][-1]["event"] == "ended":
            return


def _window_text(event: Mapping[str, Any]) -> str:
    if "window_start" not in event:
        return {"gap": "changes were missed; final windows were not"}.get(
            event["event"], "the query has ended"
        )
    start = datetime.fromisoformat(event["window_start"])
    key = " ".join(f"{name}={value}" for name, value in event["key"].items())
    values = " ".join(f"{name}={value}" for name, value in event["values"].items())
    return f"{start:%Y-%m-%d %H:%M:%S}  {key}  {values}{_sample_text(event)}"


def _sample_text(window: Mapping[str, Any]) -> str:
    """Return what was kept of a window and its estimates, empty if all records were kept."""
    if window["kept"] == 1:
        return ""
    kept = "unknown" if window["kept"] is None else f"{window['kept']:.4g}"
    estimates = [
        f"{name}\N{ALMOST EQUAL TO}{row['value']:.6g}"
        + ("" if None in (row["low"], row["high"]) else f" ({row['low']:.6g} to {row['high']:.6g})")
        for name, row in window["estimates"].items()
    ]
    return "  ".join(["", f"kept {kept}", *estimates])
