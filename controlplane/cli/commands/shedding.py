"""weir shedding: the ladder of a cluster, arming, history, drills, weights of queries."""

from argparse import Namespace
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from controlplane.cli.backends import api_of
from controlplane.cli.backends.interface import cluster_path, path_of
from controlplane.cli.output import (
    print_answer,
    print_facts,
    print_json,
    print_rows,
    print_sentence,
)
from controlplane.moments import shifted

_RUNG_COLUMNS: Final = {
    "rung": ("number", "number"), "from factor": ("factor", "number"), "drops": ("drops", "text"),
    "input kept %": ("input_kept", "number"), "quality lost %": ("quality_lost", "number"),
    "p95 ms": ("p95_ms", "number"),
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
_PROVISIONAL: Final = "assumed up to a factor, which the pipeline measures in the first overload"
Row = Mapping[str, Any]


def show_ladder(given: Namespace) -> None:
    """Print the ladder of a cluster: rungs, what they drop, what they keep of each query."""
    _print_report(given, api_of(given).get(_path(given)))


def arm_ladder(given: Namespace) -> None:
    """Compute the ladder and arm it."""
    _print_report(given, api_of(given).post(f"{_path(given)}/arm", reason=given.reason))


def disarm_ladder(given: Namespace) -> None:
    """Disarm the ladder."""
    path = f"{_path(given)}/disarm"
    arm_at = api_of(given).post(path, reason=given.reason, minutes=given.minutes)["arm_at"]
    until = f"; it is armed again at {_moment(arm_at)}" if arm_at else ""
    text = f"no ladder is armed on {given.cluster}{until}"
    print_answer(given, {"armed": False, "arm_at": arm_at}, text)


def activate_rung(given: Namespace) -> None:
    """Keep at least the position of a rung for some minutes."""
    values = {"rung": given.rung, "minutes": given.minutes, "reason": given.reason}
    until = api_of(given).post(f"{_path(given)}/activate", **values)["active_until"]
    text = f"rung {given.rung} is active until {datetime.fromisoformat(until):%H:%M} UTC"
    print_answer(given, {"rung": given.rung, "until": until}, text)


def release_rung(given: Namespace) -> None:
    """End the activation of a rung."""
    api_of(given).post(f"{_path(given)}/release", reason=given.reason)
    print_answer(given, {"rung": 0}, "no rung is activated")


def set_weights(given: Namespace) -> None:
    """Change the weight and the floor of a query."""
    path = path_of("/clusters/{cluster}/queries/{name}/shedding", vars(given))
    query = api_of(given).post(
        path, shedding_weight=given.weight, shedding_floor=given.floor, reason=given.reason
    )
    names = ("name", "shedding_weight", "shedding_floor")
    print_answer(given, {name: query[name] for name in names})


def list_history(given: Namespace) -> None:
    """Print when how much was dropped and what each query kept, the newest first.

    By episode; with `intervals`, by rung.
    """
    stop = datetime.now(UTC)
    times = {
        "start": (stop - timedelta(hours=given.hours)).isoformat(), "stop": stop.isoformat()
    }  # fmt: skip
    what = "history" if given.intervals else "episodes"
    rows = api_of(given).get(f"{_path(given)}/{what}", **times)
    empty = f"nothing was dropped in the last {given.hours:g} hours"
    columns = _INTERVAL_COLUMNS if given.intervals else _EPISODE_COLUMNS
    cells = _interval_cells if given.intervals else _episode_cells
    print_rows(given, rows if given.json else [cells(row) for row in rows], columns, empty)


def _episode_cells(row: Row) -> dict[str, Any]:
    kept = row["kept"]
    return {
        **row,
        "count": len(row["intervals"]),
        "kept_percent": None if kept is None else _percent(kept),
        "least": _kept_text(row),
    }


def _interval_cells(row: Row) -> dict[str, Any]:
    lost = row["quality_lost"]
    percent = None if lost is None else _percent(lost)
    return {**row, "lost_percent": percent, "kept": _kept_text(row)}


def _kept_text(row: Row) -> str:
    named = [f"{query['name']} {100 * query['kept']:.0f} %" for query in row["queries"][:_NAMED]]
    more = row["lossy_queries"] - len(named)
    return ", ".join([*named, *[f"{more} more"] * (more > 0)])


def drill(given: Namespace) -> None:
    """Print what the ladder would have dropped in a past time range."""
    stop = given.to or datetime.now(UTC)
    start = given.start or shifted(stop, -timedelta(days=1))
    times = {"start": start.isoformat(), "stop": stop.isoformat()}
    result = api_of(given).get(f"{_path(given)}/drill", **times)
    if given.json:
        print_json(result)
        return
    print_facts(_drill_facts(result))


def _drill_facts(result: Row) -> dict[str, Any]:
    least = result["least"]
    least_text = None
    if least is not None:
        name = least["name"] or f"query {least['query']}"
        least_text = f"{name}, {_percent(least['kept'])} % for {least['seconds']:,.0f} s"
    return {
        "above the capacity": f"{result['above_s']:,.0f} s",
        "largest input factor": round(result["largest_factor"], 3),
        "input dropped": f"{_percent(result['dropped_share'])} %",
        "quality lost": f"{_percent(result['quality_lost'])} %",
        "least kept": least_text,
    }


def _path(given: Namespace) -> str:
    return f"{cluster_path(given)}/shedding"


def _print_report(given: Namespace, report: Row) -> None:
    if given.json:
        print_json(report)
        return
    if report["missing"]:
        print_sentence(report["missing"])
        return
    print_facts(_facts(report))
    print_rows(given, [_rung(row) for row in report["rungs"]], _RUNG_COLUMNS)
    queries = [
        {
            "name": row["name"], "weight": row["weight"], "floor": _percent(row["floor"]),
            "kept": " ".join(f"{100 * part:.0f}" for part in row["kept"]),
        }
        for row in report["queries"]
    ]  # fmt: skip
    print_rows(given, queries, _QUERY_COLUMNS, "no query")
    print_rows(given, [_node(row) for row in report["nodes"]], _NODE_COLUMNS, "no node")


def _facts(report: Row) -> dict[str, Any]:
    drift, factor, capacity = report["drift"], report["factor"], report["capacity_per_s"]
    reasons = "; ".join(reason["text"] for reason in drift["reasons"]) if drift else ""
    return {
        "ladder": f"armed by {report['set_by'] or 'Weir'}" if report["armed"] else "not armed",
        "costs": _PROVISIONAL if report["provisional"] else None,
        "armed again": report["arm_at"] and _moment(report["arm_at"]),
        "input factor": None if factor is None else round(factor, 3),
        "rung": report["rung"],
        "records/s": round(report["input_per_s"], 1),
        "can process": capacity and round(capacity, 1),
        "compute again": reasons or None,
    }


def _moment(text: str) -> str:
    return f"{datetime.fromisoformat(text):%d %b %H:%M} UTC"


def _node(row: Row) -> dict[str, Any]:
    error = None if row["error"] is None else round(1e6 * row["error"], 1)
    return {
        "name": row["name"], "source": row["source"] or "nothing",
        "us": round(1e6 * row["seconds"], 1), "error_us": error,
        "fixed_ms": round(1000 * row["fixed_s"], 1), "usable": _percent(row["usable"]),
    }  # fmt: skip


def _rung(row: Row) -> dict[str, Any]:
    named = [_drop(drop) for drop in row["drops"][:_NAMED]]
    more = len(row["drops"]) - _NAMED
    return {
        "number": row["number"], "factor": round(row["factor"], 3),
        "drops": ", ".join([*named, *[f"{more} more"] * (more > 0)]) or "nothing",
        "input_kept": _percent(row["input_kept"]), "quality_lost": _percent(row["quality_lost"]),
        "p95_ms": None if row["p95_ms"] is None else round(row["p95_ms"]),
    }  # fmt: skip


def _drop(drop: Row) -> str:
    edge = f"{drop['stream']} to {drop['query']}" if drop["query"] else drop["stream"]
    return f"{edge} {100 * drop['dropped']:.0f} %"


def _percent(share: float) -> float:
    return round(100 * share, 1)
