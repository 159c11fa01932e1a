"""weir plan: a proposal for a cluster that Weir runs, or a plan for a described one."""

import time
from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import Any

from algorithms.errors import BadParameters
from algorithms.interrupts import heeding_interrupts
from controlplane.cli.actors import viewed
from controlplane.cli.codes import Code, Refused
from controlplane.cli.documents import description_in
from controlplane.cli.output import (
    print_facts,
    print_json,
    print_sentence,
    print_table,
    progress_bar,
)
from controlplane.cli.proposal_rows import print_proposal, proposal_row
from controlplane.cluster_spec.document import ClusterDescription
from controlplane.cluster_spec.planning import Planned, plan_for
from controlplane.models import Proposal
from controlplane.proposals import computation, requests
from controlplane.proposals.requests import DEFAULTS, chosen_algorithm

# Between two looks at a proposal that is being computed.
_LOOK_S = 0.2
MOVES_SHOWN = 20


def planned(given: Namespace) -> int:
    """Print a plan for a described cluster, or request a proposal."""
    if (given.input is None) == (given.cluster is None):
        text = "name a cluster that Weir runs, or give --input FILE"
        raise Refused(Code.WRONG, text, advice="weir plan --help")
    name = given.algorithm or DEFAULTS.get(given.planner, "")
    parameters = _parameters(given.planner, name, given.param)
    if given.input is not None:
        return _described(given, name, parameters)
    return _request(given, name, parameters)


def _described(given: Namespace, name: str, parameters: Mapping[str, Any]) -> int:
    description = description_in(given.input)
    with progress_bar("planning") as bar, heeding_interrupts(bar) as report:
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
    if given.json:
        print_json(proposal_row(actor, proposal))
    else:
        print_proposal(actor, proposal, MOVES_SHOWN)
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
    """Return the typed parameters. Raises `Refused`, `Invalid`."""
    fields = {field.name: field for field in chosen_algorithm(planner, name).parameters.fields()}
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
    before, after = planned.columns["before"], planned.columns["after"]
    names = ("replication_factor", "traffic", "imbalance", "max_load")
    rows = [[name.replace("_", " "), before[name], after[name]] for name in names]
    print_sentence(f"{description.cluster.slug}: {planned.planner} by {planned.algorithm}")
    print_table({"measure": "text", "before": "number", "after": "number"}, rows)
    predicted = planned.columns["predicted"]
    print_facts(
        {
            "lower bound": planned.lower_bound,
            "bytes bound": planned.bytes_bound,
            "moves": predicted["moves"],
            "bytes": predicted["bytes"],
            "steps": predicted["steps"],
            "newly placed": len(planned.placed) or None,
        }
    )
    moves = planned.columns["moves"]
    columns = {"query": "name", "task": "number", "from": "number", "to": "number"}
    placed = [[name, None, None, node] for name, node in planned.placed.items()]
    table = [[m["name"], m.get("first"), m["from"], m["to"]] for m in moves]
    rows = [*placed, *table]
    print_table(columns, rows[:MOVES_SHOWN], "nothing moves")
    if len(rows) > MOVES_SHOWN:
        print_sentence(f"and {len(rows) - MOVES_SHOWN:,} more (--json has all)")
