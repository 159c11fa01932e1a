"""weir shedding: the ladder of a cluster, arming, history, drills, weights of queries."""

from argparse import Namespace
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from controlplane.catalog.queries import query_by_name
from controlplane.catalog.query_shedding import set_shedding
from controlplane.cli.actors import viewed
from controlplane.cli.output import (
    print_answer,
    print_facts,
    print_json,
    print_rows,
    print_sentence,
    values_of,
)
from controlplane.models import Cluster
from controlplane.planning.shedding.node_costs import NodeCost
from controlplane.shedding import activation
from controlplane.shedding.arming import arm, disarm
from controlplane.shedding.drill import Drill, run_drill
from controlplane.shedding.episodes import Episode, episodes
from controlplane.shedding.history import intervals
from controlplane.shedding.interval_costs import IntervalCost, interval_costs
from controlplane.shedding.report import (
    PROVISIONAL,
    EdgeDrop,
    LadderReport,
    RungReport,
    ladder_report,
)

_RUNG_COLUMNS: Final = {
    "rung": ("number", "number"), "from factor": ("factor", "number"), "drops": ("drops", "text"),
    "input kept %": ("input_kept", "number"), "quality lost %": ("quality_lost", "number"),
}  # fmt: skip
_NODE_COLUMNS: Final = {
    "node": ("name", "name"), "cost from": ("source", "text"), "us per record": ("us", "number"),
    "+- us": ("error_us", "number"), "ms per batch": ("fixed_ms", "number"),
    "usable %": ("usable", "number"),
}  # fmt: skip
_QUERY_COLUMNS: Final = {
    "query": ("name", "name"), "weight": ("weight", "number"), "floor %": ("floor", "number"),
    "kept % by rung": ("kept", "text"),
}  # fmt: skip
_INTERVAL_COLUMNS: Final = {
    "from": ("started_at", "moment"), "to": ("ended_at", "moment"), "rung": ("rung", "number"),
    "read": ("read", "number"), "dropped": ("dropped", "number"),
    "quality lost %": ("lost_percent", "number"), "kept": ("kept", "text"),
}  # fmt: skip
_EPISODE_COLUMNS: Final = {
    "from": ("started_at", "moment"), "to": ("ended_at", "moment"),
    "top rung": ("rung", "number"), "intervals": ("count", "number"),
    "dropped": ("dropped", "number"), "kept %": ("kept_percent", "number"),
    "least": ("least", "text"),
}  # fmt: skip
# The edges of a rung that a row of a table names.
_NAMED: Final = 2


def show_ladder(given: Namespace) -> None:
    """Print the ladder of a cluster: rungs, what they drop, what they keep of each query."""
    _, cluster = viewed(given)
    _print_report(given, cluster)


def arm_ladder(given: Namespace) -> None:
    """Compute the ladder and arm it."""
    actor, cluster = viewed(given)
    arm(actor, cluster, given.reason)
    _print_report(given, cluster)


def disarm_ladder(given: Namespace) -> None:
    """Disarm the ladder."""
    actor, cluster = viewed(given)
    row = disarm(actor, cluster, given.reason, given.minutes)
    arm_at = None if row is None else row.arm_at
    until = "" if arm_at is None else f"; it is armed again at {arm_at:%d %b %H:%M} UTC"
    text = f"no ladder is armed on {cluster.slug}{until}"
    print_answer(given, {"armed": False, "arm_at": arm_at}, text)


def activate_rung(given: Namespace) -> None:
    """Keep at least the position of a rung for some minutes."""
    actor, cluster = viewed(given)
    row = activation.activate(actor, cluster, given.rung, given.minutes, given.reason)
    text = f"rung {given.rung} is active until {row.active_until:%H:%M} UTC"
    print_answer(given, {"rung": given.rung, "until": row.active_until}, text)


def release_rung(given: Namespace) -> None:
    """End the activation of a rung."""
    actor, cluster = viewed(given)
    activation.release(actor, cluster, given.reason)
    print_answer(given, {"rung": 0}, "no rung is activated")


def set_weights(given: Namespace) -> None:
    """Change the weight and the floor of a query."""
    actor, cluster = viewed(given)
    query = set_shedding(
        actor, query_by_name(cluster, given.name), given.weight, given.floor, given.reason
    )
    print_answer(given, values_of(query, "name shedding_weight shedding_floor"))


def list_history(given: Namespace) -> None:
    """Print when how much was dropped and what each query kept, the newest first.

    By episode; with `intervals`, by rung.
    """
    _, cluster = viewed(given)
    stop = datetime.now(UTC)
    start = stop - timedelta(hours=given.hours)
    empty = f"nothing was dropped in the last {given.hours:g} hours"
    if given.intervals:
        costs = interval_costs(cluster, intervals(cluster, start, stop))
        values = [_interval(cost) | ({} if given.json else _cells(cost)) for cost in costs]
        print_rows(given, values, _INTERVAL_COLUMNS, empty)
        return
    values = [
        _episode(row, is_table=not given.json) for row in episodes(cluster, start, stop, stop)
    ]
    print_rows(given, values, _EPISODE_COLUMNS, empty)


def _episode(episode: Episode, *, is_table: bool) -> dict[str, Any]:
    values = _interval(episode.cost) | {"kept": episode.kept, "is_over": episode.is_over}
    if not is_table:
        return values | {"intervals": [_interval(cost) for cost in episode.intervals]}
    return values | {
        "count": len(episode.intervals),
        "kept_percent": None if episode.kept is None else _percent(episode.kept),
        "least": _cells(episode.cost)["kept"],
    }


def _interval(cost: IntervalCost) -> dict[str, Any]:
    names = "started_at ended_at rung position read dropped by_edge by_stream"
    return values_of(cost.row, names) | {
        "quality_lost": cost.quality_lost,
        "lossy_queries": cost.lossy_queries,
        "queries": [asdict(query) for query in cost.queries],
    }


def _cells(cost: IntervalCost) -> dict[str, Any]:
    """Return the cost of an interval as it is in a table."""
    named = [f"{query.name} {100 * query.kept:.0f} %" for query in cost.queries[:_NAMED]]
    more = cost.lossy_queries - len(named)
    lost = cost.quality_lost
    return {
        "lost_percent": None if lost is None else _percent(lost),
        "kept": ", ".join([*named, *[f"{more} more"] * (more > 0)]),
    }


def drill(given: Namespace) -> None:
    """Print what the ladder would have dropped in a past time range."""
    _, cluster = viewed(given)
    stop = _utc(given.to) if given.to else datetime.now(UTC)
    start = _utc(given.start) if given.start else stop - timedelta(days=1)
    result = run_drill(cluster, start, stop)
    if given.json:
        print_json(asdict(result))
        return
    print_facts(_drill_facts(cluster, result))


def _utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def _drill_facts(cluster: Cluster, result: Drill) -> dict[str, Any]:
    least = None
    if result.least is not None:
        name = cluster.queries.values_list("name", flat=True).get(pk=result.least.query)
        least = f"{name}, {_percent(result.least.kept)} % for {result.least.seconds:,.0f} s"
    return {
        "above the capacity": f"{result.above_s:,.0f} s",
        "largest input factor": round(result.largest_factor, 3),
        "input dropped": f"{_percent(result.dropped_share)} %",
        "quality lost": f"{_percent(result.quality_lost)} %",
        "least kept": least,
    }


def _print_report(given: Namespace, cluster: Cluster) -> None:
    report = ladder_report(cluster)
    if given.json:
        values = asdict(report)
        for name in ("ladder", "given", "kept"):
            del values[name]
        print_json(values | {"rung": report.rung, "headroom": report.headroom})
        return
    if report.missing:
        print_sentence(report.missing)
        return
    nodes = [_node(row) for row in report.nodes]
    print_facts(_facts(report))
    print_rows(given, [_rung(row) for row in report.rungs], _RUNG_COLUMNS)
    queries = [
        {
            "name": row.name, "weight": row.weight, "floor": _percent(row.floor),
            "kept": " ".join(f"{100 * part:.0f}" for part in row.kept),
        }
        for row in report.queries
    ]  # fmt: skip
    print_rows(given, queries, _QUERY_COLUMNS, "no query")
    print_rows(given, nodes, _NODE_COLUMNS, "no node")


def _facts(report: LadderReport) -> dict[str, Any]:
    reasons = "; ".join(reason.text for reason in report.drift.reasons) if report.drift else ""
    return {
        "ladder": f"armed by {report.set_by or 'Weir'}" if report.armed else "not armed",
        "costs": PROVISIONAL if report.provisional else None,
        "armed again": report.arm_at and f"{report.arm_at:%d %b %H:%M} UTC",
        "input factor": None if report.factor is None else round(report.factor, 3),
        "rung": report.rung,
        "records/s": round(report.input_per_s, 1),
        "can process": report.capacity_per_s and round(report.capacity_per_s, 1),
        "compute again": reasons or None,
    }


def _node(row: NodeCost) -> dict[str, Any]:
    error = None if row.error is None else round(1e6 * row.error, 1)
    return {
        "name": row.name, "source": row.source or "nothing", "us": round(1e6 * row.seconds, 1),
        "error_us": error, "fixed_ms": round(1000 * row.fixed_s, 1),
        "usable": _percent(row.usable),
    }  # fmt: skip


def _rung(row: RungReport) -> dict[str, Any]:
    named = [_drop(drop) for drop in row.drops[:_NAMED]]
    more = len(row.drops) - _NAMED
    return {
        "number": row.number, "factor": round(row.factor, 3),
        "drops": ", ".join([*named, *[f"{more} more"] * (more > 0)]) or "nothing",
        "input_kept": _percent(row.input_kept), "quality_lost": _percent(row.quality_lost),
    }  # fmt: skip


def _drop(drop: EdgeDrop) -> str:
    edge = f"{drop.stream} to {drop.query}" if drop.query else drop.stream
    return f"{edge} {100 * drop.dropped:.0f} %"


def _percent(share: float) -> float:
    return round(100 * share, 1)
