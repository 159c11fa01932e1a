"""The page of a node: headline, tiles, charts over time, tasks by cost, keys by share, history."""

from dataclasses import dataclass
from math import isnan
from typing import Any

from django.http import HttpResponse, JsonResponse

from controlplane.catalog.routing_versions import routing_between
from controlplane.clusters.listing import node_by_index
from controlplane.explain.node_keys import NodeKey
from controlplane.explain.node_report import NodeReport, node_report
from controlplane.explain.node_work import HostedQuery, read_node_work
from controlplane.models import Cluster
from controlplane.policies.grades import Grade
from controlplane.policies.store import policy_of
from controlplane.proposals.counterfactual import node_counterfactual
from controlplane.proposals.ledger import last_applied
from controlplane.telemetry.series import read
from controlplane.watch.observation import ClusterObservation
from dashboard.csv_files import csv_file
from dashboard.explain.rows import explanation_row
from dashboard.figures.node import (
    FIGURES,
    NodeLimits,
    WithoutPlan,
    figure_titles,
    node_figures,
)
from dashboard.figures.parts import PlanMark
from dashboard.guards import PageRequest, cluster_page
from dashboard.lists import require_known
from dashboard.nodes.headline import headline_of
from dashboard.nodes.tiles import tile_rows
from dashboard.range_parameters import requested_range
from dashboard.responses import render_page
from dashboard.time_range import TimeRange

SHOWN_TASKS = 12
SHOWN_KEYS = 12


@dataclass(frozen=True)
class TaskRow:
    """A query on the node with its part of the processed records."""

    query: HostedQuery
    share: float | None

    @property
    def tasks(self) -> str:
        """Return the numbers of its tasks here as ranges: tasks 0 to 5, 8."""
        return tasks_text(self.query.tasks)


@dataclass(frozen=True)
class KeyRow:
    """A frequent key with its share of the node's load, and the running sum of shares."""

    key: NodeKey
    share: float
    total: float
    grade: str


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
    figures = node_figures(
        series, index, limits, _plan_steps(cluster, time_range), (time_range.start, time_range.end),
        _without_plan(cluster, index, time_range),
    )  # fmt: skip
    return JsonResponse({"figures": figures})


@cluster_page
def tasks_csv(request: PageRequest, cluster: Cluster, index: int) -> HttpResponse:
    """Return all queries of a node with their cost as CSV."""
    require_known(request, ())
    node = node_by_index(cluster, index)
    measures = ClusterObservation.of_moment(cluster).task_measures
    queries = read_node_work(cluster, index, measures).queries.values()
    ordered = sorted(queries, key=lambda query: -(query.records_per_s or 0.0))
    rows = [
        (query.name, tasks_text(query.tasks), query.records_per_s, query.state_bytes)
        for query in ordered
    ]
    columns = ("query", "tasks", "records_per_s", "state_bytes")
    return csv_file(f"{cluster.slug}-{node.name}-tasks.csv", columns, rows)


def _context(cluster: Cluster, index: int, time_range: TimeRange) -> dict[str, Any]:
    report = node_report(cluster, index, None if time_range.live else time_range.end)
    row, tasks = explanation_row(cluster, report.explanation), _task_rows(report)
    return {
        "span": time_range,
        "node": report.node,
        "row": row,
        "waiting": next((r for r in report.explanation.remedies if r.proposal), None),
        "headline": headline_of(report.explanation),
        "tiles": tile_rows(report.explanation),
        "tasks": tasks,
        "task_count": sum(len(query.tasks) for query in report.tasks),
        "query_count": len(report.tasks),
        "records_share": sum(row.share or 0.0 for row in tasks),
        "keys": _key_rows(report),
        "sampled": report.keys,
        "history": report.history,
        "titles": figure_titles(),
    }


def _task_rows(report: NodeReport) -> list[TaskRow]:
    """Return the tasks with the most records, with their shares of those of the node."""
    total = report.records_per_s
    return [
        TaskRow(query, (query.records_per_s or 0.0) / total if total else None)
        for query in report.tasks[:SHOWN_TASKS]
    ]


def _key_rows(report: NodeReport) -> list[KeyRow]:
    """Return the frequent keys by their share of the records of split queries on the node."""
    if report.keys is None or not report.keys.total:
        return []
    rows, running = [], 0.0
    cause = report.explanation.cause
    exceeded = report.explanation.finding.grade == Grade.BAD
    for key in report.keys.rows[:SHOWN_KEYS]:
        share = key.rate / report.keys.total
        running += share
        is_cause = exceeded and cause is not None and cause.key == key.label
        rows.append(KeyRow(key, share, min(1.0, running), "bad" if is_cause else ""))
    return rows


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
