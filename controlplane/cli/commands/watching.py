"""weir watch: events of a cluster, read from its rows."""

import time
from argparse import Namespace
from collections.abc import Iterator, Mapping
from typing import Any, Final

from controlplane.cli.actors import viewed
from controlplane.cli.codes import Code
from controlplane.cli.following import Followed, events_since, followed
from controlplane.cli.output import console, print_json
from controlplane.models import Cluster, Proposal
from controlplane.proposals.listing import proposal_by_id

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


def watched(given: Namespace) -> int:
    """Print events until the proposal has ended, the time limit, or Ctrl-C."""
    _, cluster = viewed(given)
    if given.proposal is not None:
        proposal_by_id(cluster, given.proposal)
    seen: Followed | None = None
    for now in _observations(cluster, given):
        for event in events_since(seen, now):
            _print(given, event)
        seen = now
        if given.proposal is not None and (code := _ENDS.get(now.state_of_proposal)) is not None:
            return code
    # A cluster is watched as long as was asked for; a proposal should have ended by then.
    return Code.DONE if given.proposal is None else Code.WAITED


def _observations(cluster: Cluster, given: Namespace) -> Iterator[Followed]:
    until = None if given.seconds is None else time.monotonic() + given.seconds
    while True:
        yield followed(cluster.pk, given.proposal)
        if until is not None and time.monotonic() >= until:
            return
        time.sleep(max(0.05, given.every))


def _print(given: Namespace, event: dict[str, Any]) -> None:
    if given.json:
        print_json(event, line=True)
        return
    time = f"{event['at']:%H:%M:%S}"
    terminal = console()
    terminal.print(f"{time}  {event['kind']:<9}", end=" ", style="bold", markup=False)
    terminal.print(event["text"], markup=False, soft_wrap=True)
