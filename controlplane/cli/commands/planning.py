"""weir plan: a proposal for a cluster that Weir runs, or a plan for a described one."""

import time
from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import Any

from algorithms.errors import BadParameters
from algorithms.interrupts import interruptible
from controlplane.cli.actors import viewed
from controlplane.cli.codes import Code, Refused
from controlplane.cli.commands.documents import description_in
from controlplane.cli.output import (
    print_facts,
    print_json,
    print_sentence,
    print_table,
    progress_bar,
)
from controlplane.cli.proposal_rows import (
    ACTION_COLUMNS,
    action_cells,
    print_measures,
    print_proposal,
)
from controlplane.cluster_spec.document import ClusterDescription
from controlplane.cluster_spec.planning import Planned, plan_for
from controlplane.models import Proposal
from controlplane.planning.adapters import adapter_of
from controlplane.proposals import computation, requests
from controlplane.proposals.requests import default_planner

# Between two looks at a proposal that is being computed.
_LOOK_S = 0.2
ACTIONS_SHOWN = 20


def plan(given: Namespace) -> int:
    """Print a plan for a described cluster, or request a proposal."""
    if (given.input is None) == (given.cluster is None):
        message = "name a cluster that Weir runs, or give --input FILE"
        raise Refused(Code.WRONG, message, advice="weir plan --help")
    planner, name = given.planner or default_planner(), given.algorithm
    given.planner = planner
    parameters = _parameters(planner, name, given.param)
    if given.input is not None:
        return _described(given, name, parameters)
    return _request(given, name, parameters)


def _described(given: Namespace, name: str, parameters: Mapping[str, Any]) -> int:
    description = description_in(given.input)
    with progress_bar("planning") as bar, interruptible(bar) as report:
        planned = plan_for(description, given.planner, name, parameters, report)
    if given.json:
        print_json(planned.to_json())
    else:
        _print_plan(description, planned)
    return Code.DONE


def _request(given: Namespace, name: str, parameters: Mapping[str, Any]) -> int:
    actor, cluster = viewed(given)
    proposal = requests.request(actor, cluster, name, parameters, planner=given.planner)
    if given.here:
        computation.compute(proposal.pk)
    if given.wait or given.here:
        _wait_for(proposal, given.timeout)
    proposal.refresh_from_db()
    print_proposal(given, actor, proposal, ACTIONS_SHOWN)
    return Code.REFUSED if proposal.state == Proposal.State.FAILED else Code.DONE


def _wait_for(proposal: Proposal, timeout: float) -> None:
    """Wait until a worker has computed a proposal. Raises `Refused` after the timeout."""
    deadline = time.monotonic() + timeout
    with progress_bar(str(proposal)) as bar:
        while True:
            proposal.refresh_from_db(fields=["state", "progress"])
            if proposal.state != Proposal.State.COMPUTING:
                return
            bar(proposal.progress)
            if time.monotonic() > deadline:
                text = f"{proposal} is not computed after {timeout:g} s"
                advice = f"is a worker running? Later: weir proposals show {proposal.pk}"
                raise Refused(Code.WAITED, text, advice=advice)
            time.sleep(_LOOK_S)


def _parameters(planner: str, name: str, given: Sequence[str]) -> dict[str, Any]:
    """Return the parameters as their fields have them. Raises `Refused`, `Invalid`."""
    adapter = adapter_of(planner)
    chosen = adapter.algorithm(name)
    fields = {field.name: field for field in adapter.planner.fields(chosen)}
    parameters: dict[str, Any] = {}
    for pair in given:
        key, equals, text = pair.partition("=")
        if not equals:
            raise Refused(Code.WRONG, f"--param {pair}: write NAME=VALUE")
        try:
            parameters[key] = fields[key].parsed(text) if key in fields else float(text)
        except ValueError as wrong:
            reason = str(wrong) if key in fields else "is no parameter of it, or no number"
            raise BadParameters({key: [reason]}) from None
    return parameters


def _print_plan(description: ClusterDescription, planned: Planned) -> None:
    computed = planned.computed
    print_sentence(f"{description.cluster.slug}: {planned.planner} by {planned.algorithm}")
    print_measures(planned.planner, computed.before, computed.after, planned.bounds)
    print_facts(
        {
            "actions": computed.predicted["actions"],
            "bytes": computed.predicted["bytes"],
            "least bytes": planned.bounds.get("bytes"),
            "steps": computed.predicted["steps"],
            "newly placed": len(planned.placed) or None,
        }
    )
    nodes = {node.index: node.name for node in description.nodes}
    placed = [["Node", name, None, nodes[node]] for name, node in planned.placed.items()]
    rows = [*placed, *map(action_cells, planned.texts)]
    print_table(ACTION_COLUMNS, rows[:ACTIONS_SHOWN], "nothing changes")
    if len(rows) > ACTIONS_SHOWN:
        print_sentence(f"and {len(rows) - ACTIONS_SHOWN:,} more (--json has all)")
