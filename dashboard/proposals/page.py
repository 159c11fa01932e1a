"""The context of a proposal's page, from typed values, with words and chips of its states.

Nothing here reads the actions.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from django.utils import timezone

from algorithms.registry import algorithm_title
from controlplane.access.roles import Actor
from controlplane.models import Cluster, Execution, LedgerEntry, Proposal
from controlplane.numbers import percent, raised, seconds, size, value_text
from controlplane.planning.plan_summary import PlanSummary
from controlplane.plans.proposal_states import ACTIVE
from controlplane.policies.assessment import Assessment
from controlplane.policies.auto_approval import refusals
from controlplane.policies.gate import Judgement
from controlplane.policies.planner_record import record_of
from controlplane.policies.settings import PolicySettings
from controlplane.policies.store import policy_of
from controlplane.proposals.checks import Check, CheckCode, checks_of
from controlplane.proposals.comments import MAX_COMMENTS, comments_of
from controlplane.proposals.counterfactual import MEASURES
from controlplane.proposals.drift import drift_of
from controlplane.proposals.executions import control
from controlplane.proposals.executions.progress import Progress, waiting_for
from controlplane.proposals.outcome import Outcome, outcome_of
from controlplane.proposals.review import Review
from controlplane.topology.applicability import Obstacle
from dashboard.plan_names import titled_parameters
from dashboard.proposals.headline import effect_clauses, headline_of, joined, pause_clause
from dashboard.proposals.list_rows import state_word
from dashboard.proposals.measure_rows import LEDGER, proof_rows, proof_table

UNDER_WAY: Final = (Proposal.State.COMPUTING, Proposal.State.APPROVED, *ACTIVE)
_WAITS: Final = (Proposal.State.READY, Proposal.State.APPROVED)
# Title if it passes, title if it does not, and the words before the number.
_TITLES: Final[Mapping[CheckCode, tuple[str, str, str]]] = {
    CheckCode.LIMIT: ("within its limit after the plan", "above its limit after the plan", ""),
    CheckCode.ORDER: ("No step is worse than now", "Some steps are worse than now",
                      "peak imbalance"),
    CheckCode.RATES: ("Rates as in the snapshot", "Rates differ from the snapshot", "changed by"),
    CheckCode.ENDED: ("Queries as in the snapshot", "Queries have ended", "ended"),
    CheckCode.NEW: ("Few new queries", "Many new queries", "new"),
    CheckCode.GAIN: ("The gain remains", "The gain is gone", "lost"),
    CheckCode.PAUSE: ("Longest pause", "Queries pause too long", ""),
    CheckCode.FOUR_EYES: ("Approver is not the requester", "Approver is the requester",
                          "requested by"),
    CheckCode.BLACKOUT: ("No blackout", "In a blackout", ""),
}  # fmt: skip
# Rows that a person can compare at a glance; the nodes with the most moves are shown.
MAX_MATRIX: Final = 16
MAX_LOADS: Final = 24


def page_context(actor: Actor, cluster: Cluster, proposal: Proposal) -> dict[str, Any]:
    """Return what all parts of the page show."""
    policy = policy_of(cluster)
    execution = Execution.objects.filter(proposal=proposal).first()
    if execution is not None:
        execution.proposal = proposal
    judgement = Judgement.stored(proposal.judgement)
    better = judgement.better if judgement is not None else None
    return {
        "proposal": proposal,
        "title": algorithm_title(proposal.planner, proposal.algorithm),
        "parameters": _parameters(proposal),
        "state": state_word(proposal),
        "under_way": proposal.state in UNDER_WAY,
        "waits": waiting_for(proposal, execution.waits if execution is not None else ""),
        "execution": execution,
        "policy": policy,
        "comments": comments_of(proposal),
        "comments_left": MAX_COMMENTS,
        "better": better if better is not None and not better.is_limit else None,
        **_verbs(actor, proposal),
        **(_plan(cluster, proposal, policy) if proposal.after else {}),
    }


def _parameters(proposal: Proposal) -> list[tuple[str, Any]]:
    """Return the titles and values of the parameters; of a list, as of queries, its length."""
    values = {
        name: len(value) if isinstance(value, list) else value
        for name, value in proposal.parameters.items()
        if name != "budget"
    }
    return titled_parameters(proposal.planner, proposal.algorithm, values)


def _verbs(actor: Actor, proposal: Proposal) -> dict[str, Any]:
    offered = control.offered(actor, proposal)
    return {
        "buttons": offered,
        "dialogs": [verb for verb in offered if verb.question],
        "may_request_again": control.may_request_again(actor, proposal),
        "may_explain": bool(proposal.unexplained) and actor.may("operator", proposal.cluster_id),
    }


def _plan(cluster: Cluster, proposal: Proposal, policy: PolicySettings) -> dict[str, Any]:
    summary, names = PlanSummary.from_json(proposal.summary), node_names(cluster)
    outcome = outcome_of(proposal, summary, policy)
    waits = proposal.state in _WAITS
    review = Review.stored(proposal.review) if waits else None
    before, after = (review.before, review.after) if review else (proposal.before, proposal.after)
    loads = load_rows(before, after, cluster, names)
    rows = loads["rows"] if loads else []
    fullest = max(rows, key=lambda row: row["before"])["name"] if rows else ""
    rollback_s = proposal.rollback_cost.get("seconds")
    return {
        "summary": summary,
        "outcome": outcome,
        "plan_headline": headline_of(outcome, rollback_s, fullest),
        "effects": _effects(outcome, fullest),
        "matrix": matrix_of(summary, names),
        "loads": loads,
        "review": _review(review, policy, outcome),
        "drift": _drift(proposal, review),
        "checks": check_rows(checks_of(proposal, outcome, policy)) if waits else [],
        "refusals": refusals(proposal, policy) if proposal.state == Proposal.State.READY else None,
        "record": record_of(cluster, proposal.planner),
        "proof": _proof(proposal),
    }


def _drift(proposal: Proposal, review: Review | None) -> Mapping[str, Any] | None:
    """Return the drift at the last review, and that of an execution while it drifts."""
    if review is not None:
        return review.drift or None
    if proposal.state != Proposal.State.EXECUTING or proposal.drifting_since is None:
        return None
    done = Execution.objects.filter(proposal=proposal).values_list("done", flat=True).first()
    return drift_of(proposal, done or 0).to_json()


def _effects(outcome: Outcome, fullest: str) -> dict[str, str]:
    """Return the effect in words, as the dialog of the approval shows it."""
    clauses = effect_clauses(outcome, fullest)
    pause = pause_clause(outcome)
    moved = f"; {size(outcome.bytes)} of state moves" if outcome.bytes else ""
    return {
        "measures": f"{joined(clauses)}." if clauses else "No measure changes.",
        "pause": f"{raised(pause)}{moved}.",
    }


def _review(
    review: Review | None, policy: PolicySettings, outcome: Outcome
) -> dict[str, Any] | None:
    """Return the strip of what will still happen, None without a review."""
    if review is None:
        return None
    left = None if review.gain_lost is None else 1 - review.gain_lost
    moment = datetime.fromisoformat(review.at)
    # Two reviews are missing: the worker is silent.
    is_old = timezone.now() - moment > timedelta(seconds=30 + 40 * review.took_s)
    return {
        "at": moment,
        "is_old": is_old,
        "applicable": review.applicable,
        "obstacles": [(obstacle_words(code), n) for code, n in review.obstacles.items()],
        "left": None if left is None else percent(left),
        "locks_below": percent(1 - policy.tolerated_gain_loss),
        "actions": outcome.actions,
    }


def _proof(proposal: Proposal) -> dict[str, Any] | None:
    """Return approved, expected, measured and counterfactual values, None before the entry."""
    entry = LedgerEntry.objects.filter(proposal=proposal).first()
    if entry is None:
        return None
    return {
        "entry": entry,
        "assessment": Assessment.from_json(entry.assessment),
        **proof_table(proof_rows(entry, proposal.before)),
        "since": _finished_at(proposal),
        "charts": [
            (name, title)
            for name, (title, *_) in LEDGER.items()
            if name in MEASURES and name in entry.measured
        ],
    }


def _finished_at(proposal: Proposal) -> datetime | None:
    """Return when the execution ended, from which its effect is measured."""
    times = Execution.objects.filter(proposal=proposal).values_list("finished_at", flat=True)
    return times.first()


def counts_text(progress: Progress) -> str:
    """Return the finished actions in words: 141 applied, 48 skipped (query ended)."""
    steps = progress.execution.steps.filter(direction=progress.execution.direction)
    codes = Counter(
        code for skipped in steps.values_list("skipped", flat=True) for _, code in skipped
    )
    text = f"{progress.applied:,} applied"
    if progress.skipped:
        why = ", ".join(obstacle_words(code) for code, _ in codes.most_common())
        text += f", {progress.skipped:,} skipped" + (f" ({why})" if why else "")
    return text


def check_rows(checks: Sequence[Check]) -> list[dict[str, Any]]:
    """Return the checks as text, those that fail first."""
    rows = [_row(check) for check in checks]
    return sorted(rows, key=lambda row: bool(row["passed"]))


def _row(check: Check) -> dict[str, Any]:
    good, bad, before = _TITLES[check.code]
    parts = []
    if check.number is not None:
        parts.append(f"{before} {_text(check, check.number)}".strip())
        if check.limit is not None:
            parts.append(f"limit {_text(check, check.limit)}")
    elif check.detail:
        parts.append(f"{before} {check.detail}".strip())
    title = good if check.passed else bad
    if check.code is CheckCode.LIMIT:
        title = f"{check.detail} {title}"
    text = ", ".join(parts)
    return {"code": check.code, "title": title, "passed": check.passed, "text": text}


def _text(check: Check, value: float) -> str:
    return seconds(value / 1000) if check.unit == "ms" else value_text(value, check.unit)


def node_names(cluster: Cluster) -> dict[int, str]:
    """Return the names of all nodes by index, in their order."""
    return dict(cluster.nodes.order_by("index").values_list("index", "name"))


def matrix_of(summary: PlanSummary, names: Mapping[int, str]) -> dict[str, Any] | None:
    """Return the matrix of the nodes with the most moves, None if nothing moves.

    `hidden`: moves between nodes that are not shown; `query` of a cell: the filter of its actions.
    """
    if not summary.flows:
        return None
    counts: dict[int, int] = {}
    for flow in summary.flows:
        for node in (flow.source, flow.target):
            counts[node] = counts.get(node, 0) + flow.moves
    everything = sorted(names.keys() | counts.keys())
    if len(everything) > MAX_MATRIX:
        busiest = sorted(counts, key=lambda node: -counts[node])[:MAX_MATRIX]
        everything = sorted(busiest)
    moves = {(flow.source, flow.target): flow.moves for flow in summary.flows}
    rows = [
        {
            "name": names.get(source, f"node {source}"),
            "cells": [_cell(moves, source, target) for target in everything],
            "total": sum(moves.get((source, target), 0) for target in everything),
        }
        for source in everything
    ]
    totals = [sum(moves.get((source, node), 0) for source in everything) for node in everything]
    return {
        "rows": rows,
        "columns": everything,
        "column_totals": totals,
        "most": max(moves.values()),
        "total": sum(moves.values()),
        "hidden": sum(moves.values()) - sum(totals),
    }


def _cell(moves: Mapping[tuple[int, int], int], source: int, target: int) -> dict[str, Any]:
    query = f"from:{source} to:{target}"
    return {
        "moves": moves.get((source, target), 0), "query": query, "is_self": source == target
    }  # fmt: skip


def load_rows(
    before: Mapping[str, Any], after: Mapping[str, Any], cluster: Cluster, names: Mapping[int, str]
) -> dict[str, Any] | None:
    """Return the loads of the nodes by index before and after a plan, None without one.

    `hidden`: how many change less and are not shown; `top`: the largest.
    """
    declared = dict(cluster.nodes.values_list("index", "capacity"))
    shares = [_shares(values, declared, sorted(names)) for values in (before, after)]
    if not shares[0]:
        return None
    rows: list[dict[str, Any]] = [
        {"name": names.get(index, f"node {index}"), "before": was, "after": becomes}
        for index, (was, becomes) in enumerate(zip(*shares, strict=False))
    ]
    ranked = sorted(rows, key=lambda row: -max(abs(row["after"] - row["before"]), row["after"]))
    shown = ranked[:MAX_LOADS]
    return {
        "rows": [row for row in rows if row in shown],
        "hidden": len(rows) - len(shown),
        "top": max((max(was, becomes) for was, becomes in zip(*shares, strict=False)), default=0.0),
    }


def _shares(
    values: Mapping[str, Any], declared: Mapping[int, float], indices: Sequence[int]
) -> list[float]:
    rates = values.get("rates") or []
    capacities = values.get("capacities") or [declared[index] for index in indices]
    return [
        rate / capacity if capacity else 0.0
        for rate, capacity in zip(rates, capacities, strict=False)
    ]


_OBSTACLES: Final[Mapping[str, str]] = {
    Obstacle.ENDED: "query ended",
    Obstacle.CHANGED: "object changed",
    Obstacle.NO_NODE: "node removed",
}
# By kind of action: the short name in the diff, and the title of its group.
KINDS: Final[Mapping[str, tuple[str, str]]] = {
    "move_tasks": ("move", "Query moves"),
    "assign_stream": ("redirect", "Stream redirects"),
    "assign_partition": ("redirect", "Partition redirects"),
    "set_drop_rule": ("drop", "Drop rules"),
    "set_ladder": ("ladder", "Shedding plan"),
    "set_key_grouping": ("group", "Key grouping"),
    "set_aggregator": ("aggregate", "Aggregator nodes"),
    "set_aggregators": ("aggregate", "Aggregator nodes"),
    "set_task_count": ("tasks", "Numbers of tasks"),
    "set_capacity": ("capacity", "Capacities"),
    "set_node_active": ("node", "Active nodes"),
    "set_node_count": ("nodes", "Numbers of nodes"),
    "set_split_count": ("splits", "Numbers of split nodes"),
    "set_split_capacity": ("capacity", "Capacities of split nodes"),
}


def obstacle_words(code: str) -> str:
    """Return why an action is skipped, in two words."""
    return _OBSTACLES.get(code, code)


def kind_words(kind: str) -> tuple[str, str]:
    """Return the short name of a kind of action, and the title of its group."""
    return KINDS.get(kind, (kind.replace("_", " "), kind.replace("_", " ").capitalize()))
