"""The page of a node: headline, tiles, charts over time, tasks by cost, keys by share, history."""

from collections.abc import Sequence
from datetime import timedelta
from itertools import accumulate
from math import isnan
from typing import Any, Final

from django.http import HttpResponse, JsonResponse

from controlplane import numbers
from controlplane.catalog.routing_versions import routing_between
from controlplane.clusters.listing import node_by_index
from controlplane.explain import Explanation, ExplanationSubject, SubjectKind
from controlplane.explain.causes.evidence import Evidence
from controlplane.explain.changes import changes_of_node
from controlplane.explain.node_keys import NodeKeys
from controlplane.explain.node_work import HostedQuery, NodeQueries, read_node_work
from controlplane.explain.service import explanation_of
from controlplane.explain.units import quantity
from controlplane.explain.values import Fact
from controlplane.models import Cluster
from controlplane.numbers import change
from controlplane.policies.grades import Grade
from controlplane.policies.store import policy_of
from controlplane.proposals.counterfactual import node_counterfactual
from controlplane.proposals.ledger import last_applied
from controlplane.telemetry.arrivals.catching_up import waited
from controlplane.telemetry.series import fitting_seconds, read
from controlplane.watch.observation import ClusterObservation
from dashboard.csv_files import csv_file
from dashboard.explain.rows import explanation_row
from dashboard.figures.node import FIGURES, NodeLimits, WithoutPlan, figure_titles, node_figures
from dashboard.figures.parts import PlanMark
from dashboard.frame.headline import NO_CAUSE, Headline
from dashboard.frame.tile import Tile, number_and_unit
from dashboard.guards import PageRequest, cluster_page
from dashboard.lists import require_known
from dashboard.range_parameters import requested_range
from dashboard.responses import render_page
from dashboard.time_range import TimeRange

SHOWN_TASKS = 12
SHOWN_KEYS = 12
# The history of a node lists the newest changes of this time.
HISTORY: Final = timedelta(days=7)
_SHOWN: Final = 20
_TITLES: Final = {
    "load": "Load",
    "backlog": "Backlog",
    "latency": "Latency p95",
    "busy": "Processor time",
    "state": "State",
    "queries": "Queries",
}
# The part of the page that a tile leads to; the others lead to the tasks.
_TARGETS: Final = {name: f"chart-{name}" for name in ("load", "backlog", "latency", "state")}
_LIMITS: Final = {
    "load": "limit {}",
    "backlog": "limit 1 s of work",
    "latency": "limit {}",
    "busy": "of one processor",
}


@cluster_page
def detail(request: PageRequest, cluster: Cluster, index: int) -> HttpResponse:
    """Render the page of a node; the browser loads its charts from `charts`."""
    time_range = requested_range(request)
    return render_page(request, "node.html", _context(cluster, index, time_range))


@cluster_page
def live(request: PageRequest, cluster: Cluster, index: int) -> HttpResponse:
    """Render what changes on the page of a node."""
    time_range = requested_range(request)
    return render_page(request, "_node.html", _context(cluster, index, time_range))


@cluster_page
def charts(request: PageRequest, cluster: Cluster, index: int) -> JsonResponse:
    """Return the charts of a node in the time range, as JSON."""
    node, policy = node_by_index(cluster, index), policy_of(cluster)
    time_range = requested_range(request)
    series = read(cluster, FIGURES, time_range.start, time_range.end)
    limits = NodeLimits(policy.watch_load * node.capacity, node.capacity, policy.latency_ms)
    ends = time_range.start, time_range.end
    figures = node_figures(
        series, index, limits, _plan_steps(cluster, time_range), ends,
        waited(series, cluster.trigger_ms, fitting_seconds(*ends)),
        _without_plan(cluster, index, time_range),
    )  # fmt: skip
    return JsonResponse({"figures": figures})


@cluster_page
def tasks_csv(request: PageRequest, cluster: Cluster, index: int) -> HttpResponse:
    """Return all queries of a node with their cost as CSV."""
    require_known(request, ())
    node = node_by_index(cluster, index)
    measures = ClusterObservation.of_moment(cluster).task_measures
    rows = [
        (query.name, tasks_text(query.tasks), query.evaluations_per_s, query.state_bytes)
        for query in _by_records(read_node_work(cluster, index, measures))
    ]
    columns = ("query", "tasks", "evaluations_per_s", "state_bytes")
    return csv_file(f"{cluster.slug}-{node.name}-tasks.csv", columns, rows)


def _context(cluster: Cluster, index: int, time_range: TimeRange) -> dict[str, Any]:
    node, time = node_by_index(cluster, index), None if time_range.live else time_range.end
    evidence = Evidence(ClusterObservation.of_moment(cluster, time)).of_node(node)
    subject = ExplanationSubject(SubjectKind.NODE, str(index), time)
    explanation, now = explanation_of(evidence.cluster, subject), evidence.observed.until
    queries, weights = _by_records(evidence.work), evidence.work.weights
    tasks = _task_rows(queries)
    return {
        "span": time_range,
        "window_text": "" if time_range.live else "mean of the minute until its end",
        "node": node,
        "row": explanation_row(cluster, explanation),
        "waiting": next((r for r in explanation.remedies if r.proposal), None),
        "headline": headline_of(explanation),
        "tiles": tile_rows(explanation),
        "tasks": tasks,
        "task_count": sum(len(query.tasks) for query in queries),
        "query_count": len(queries),
        "records_share": sum(row["share"] or 0.0 for row in tasks),
        "keys": _key_rows(evidence.keys, explanation),
        "sampled": evidence.keys,
        "history": changes_of_node(cluster, index, now - HISTORY, now, weights)[: -_SHOWN - 1 : -1],
        "titles": figure_titles(),
    }


def _by_records(work: NodeQueries) -> list[HostedQuery]:
    """Return the queries of a node, those with the most records first."""
    return sorted(work.queries.values(), key=lambda query: -(query.evaluations_per_s or 0.0))


def _task_rows(queries: Sequence[HostedQuery]) -> list[dict[str, Any]]:
    """Return the first queries with their shares of the processed records of all."""
    total = sum(query.evaluations_per_s or 0.0 for query in queries)
    return [
        {
            "query": query,
            "tasks": tasks_text(query.tasks),
            "share": (query.evaluations_per_s or 0.0) / total if total else None,
        }
        for query in queries[:SHOWN_TASKS]
    ]


def _key_rows(keys: NodeKeys | None, explanation: Explanation) -> list[dict[str, Any]]:
    """Return the frequent keys by their share of the records of split queries on the node."""
    if keys is None or not keys.total:
        return []
    cause = explanation.cause if explanation.finding.grade == Grade.BAD else None
    shares = [key.rate / keys.total for key in keys.rows[:SHOWN_KEYS]]
    return [
        {
            "key": key,
            "share": share,
            "total": min(1.0, total),
            "grade": "bad" if cause is not None and cause.key == key.label else "",
        }
        for key, share, total in zip(keys.rows, shares, accumulate(shares), strict=False)
    ]


def _without_plan(cluster: Cluster, index: int, time_range: TimeRange) -> WithoutPlan | None:
    """Return the load of a node without the last plan, None if it did not change the node."""
    last = last_applied(cluster, time_range.end)
    if last is None or last[0].finished_at is None:
        return None
    execution, applied = last
    start = max(time_range.start, last[0].finished_at)
    load = node_counterfactual(execution, applied, index, start, time_range.end)
    if load is None:
        return None
    points = [
        (round(1000 * moment.timestamp()), value)
        for moment, value in zip(load.starts, load.without.tolist(), strict=True)
        if not isnan(value)
    ]
    return WithoutPlan(execution.proposal_id, points, load.interval)


def _plan_steps(cluster: Cluster, time_range: TimeRange) -> list[PlanMark]:
    """Return the steps of plans that took effect in the time range."""
    return [
        PlanMark(
            round(1000 * row.applied_at.timestamp()), str(row.proposal_id),
            f"Proposal {row.proposal_id}: {row.reason}",
        )
        for row in reversed(routing_between(cluster, time_range.start, time_range.end))
        if row.applied_at and row.proposal_id
    ]  # fmt: skip


def tasks_text(tasks: Any) -> str:
    """Return numbers of tasks with ranges: "tasks 0 to 5, 8"; "task 0" for one."""
    parts: list[list[int]] = []
    for task in sorted(tasks):
        if parts and parts[-1][1] == task - 1:
            parts[-1][1] = task
        else:
            parts.append([task, task])
    texts = [str(first) if first == last else f"{first} to {last}" for first, last in parts]
    return f"{'task' if len(tasks) == 1 else 'tasks'} {', '.join(texts)}"


def tile_rows(explanation: Explanation) -> list[Tile]:
    """Return the tiles of an explained node."""
    return [_row(fact) for fact in explanation.facts]


def _row(fact: Fact) -> Tile:
    number, unit = number_and_unit(fact.value, fact.unit)
    limit = "" if fact.limit is None else quantity(fact.limit, fact.unit)
    return Tile(
        _TITLES[fact.name], number, unit, _trend(fact), _LIMITS.get(fact.name, "").format(limit),
        fact.value, fact.limit,
        grade=str(fact.grade) if fact.grade in (Grade.WARN, Grade.BAD) else "",
        link=f"#{_TARGETS.get(fact.name, 'tasks')}", name=fact.name,
    )  # fmt: skip


def _trend(fact: Fact) -> str:
    """Return the change against the five minutes before."""
    if fact.total is not None:
        return f"of {fact.total:,.0f} in the cluster"
    if fact.value is None or fact.before is None:
        return ""
    return f"{change(fact.value, fact.before, fact.unit)} in 5 min"


def headline_of(explanation: Explanation) -> Headline:
    """Return the headline of an explained node."""
    finding = explanation.finding
    what, grade = explanation.headline, str(finding.grade)
    if finding.grade == Grade.BAD or (finding.grade == Grade.WARN and explanation.ranked):
        return Headline(what, grade=grade).explained(explanation.ranked, NO_CAUSE)
    if finding.value is None:
        return Headline(what, "First figures appear with the first micro-batch.", grade)
    limit = f": at most {numbers.compact(finding.limit)} deliveries/s" if finding.limit else ""
    return Headline(what, f"No limit of this node is exceeded{limit}.", grade)
