"""weir queries keys: shares of keys, and what key groupings would give."""

from argparse import Namespace
from dataclasses import asdict
from typing import Any, Final

from controlplane.catalog.queries import query_by_name
from controlplane.cli.actors import viewed
from controlplane.cli.output import print_facts, print_json, print_rows, print_sentence
from controlplane.groupings import parameters_text
from controlplane.partitioning.key_report import (
    GroupingReplay,
    KeyReport,
    KeyShare,
    read_key_report,
)

_KEY_COLUMNS: Final = {
    "key": ("label", "name"), "share %": ("share", "number"), "records/s": ("rate", "number"),
    "tasks": ("tasks", "text"),
}  # fmt: skip
_GROUPING_COLUMNS: Final = {
    "grouping": ("name", "name"), "parameters": ("parameters", "text"),
    "points": ("points", "number"), "pairs": ("memory", "number"),
    "tasks/key": ("pairs_per_key", "number"), "partials/s": ("partials_per_s", "number"),
    "": ("note", "text"),
}  # fmt: skip


def show_keys(given: Namespace) -> None:
    """Print the most frequent keys of a query, and what each key grouping would give."""
    _, cluster = viewed(given)
    report = read_key_report(query_by_name(cluster, given.name))
    if given.json:
        print_json(asdict(report))
        return
    if report.sampled_at is None:
        print_sentence("no keys were sampled in the last ten minutes")
        return
    print_facts(_facts(report))
    print_rows(given, [_key(key) for key in report.keys], _KEY_COLUMNS)
    print_rows(given, [_grouping(row) for row in report.groupings], _GROUPING_COLUMNS)


def _facts(report: KeyReport) -> dict[str, Any]:
    return {
        "records/s": round(report.records_per_s, 1),
        "keys": report.distinct,
        "exponent": report.exponent,
        "pairs": report.memory,
        "imbalance": _points(report.imbalance),
        "recommended": report.recommended or None,
    }


def _points(share: float) -> str:
    return f"{100 * share:.1f} points of capacity"


def _key(key: KeyShare) -> dict[str, Any]:
    tasks = [f"{task}: {100 * share:.0f} %" for task, share in key.tasks.items()]
    return {
        "label": key.label, "share": round(100 * key.share, 2),
        "rate": round(key.records_per_s, 1), "tasks": ", ".join(tasks),
    }  # fmt: skip


def _grouping(row: GroupingReplay) -> dict[str, Any]:
    notes = [*["in use"] * row.in_use, *["recommended"] * row.recommended]
    return {
        "name": row.name, "parameters": parameters_text(row.parameters),
        "points": round(100 * row.imbalance, 1), "memory": row.memory,
        "pairs_per_key": round(row.pairs_per_key, 2),
        "partials_per_s": round(row.partials_per_s, 1), "note": ", ".join(notes),
    }  # fmt: skip
