"""weir queries keys: shares of keys, and what key groupings would give."""

from argparse import Namespace
from collections.abc import Mapping
from typing import Any, Final

from controlplane.cli.backends import api_of
from controlplane.cli.backends.interface import path_of
from controlplane.cli.output import print_facts, print_json, print_rows, print_sentence
from controlplane.groupings import parameters_text

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
    report = api_of(given).get(path_of("/clusters/{cluster}/queries/{name}/keys", vars(given)))
    if given.json:
        print_json(report)
        return
    if report["sampled_at"] is None:
        print_sentence("no keys were sampled in the last ten minutes")
        return
    print_facts(_facts(report))
    print_rows(given, [_key(key) for key in report["keys"]], _KEY_COLUMNS)
    print_rows(given, [_grouping(row) for row in report["groupings"]], _GROUPING_COLUMNS)


def _facts(report: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "records/s": round(report["records_per_s"], 1),
        "keys": report["distinct"],
        "exponent": report["exponent"],
        "pairs": report["memory"],
        "imbalance": f"{100 * report['imbalance']:.1f} points of capacity",
        "recommended": report["recommended"] or None,
    }


def _key(key: Mapping[str, Any]) -> dict[str, Any]:
    tasks = [f"{task}: {100 * share:.0f} %" for task, share in key["tasks"].items()]
    return {
        "label": key["label"], "share": round(100 * key["share"], 2),
        "rate": round(key["records_per_s"], 1), "tasks": ", ".join(tasks),
    }  # fmt: skip


def _grouping(row: Mapping[str, Any]) -> dict[str, Any]:
    notes = [*["in use"] * row["in_use"], *["recommended"] * row["recommended"]]
    return {
        "name": row["name"], "parameters": parameters_text(row["parameters"]),
        "points": round(100 * row["imbalance"], 1), "memory": row["memory"],
        "pairs_per_key": round(row["pairs_per_key"], 2),
        "partials_per_s": round(row["partials_per_s"], 1), "note": ", ".join(notes),
    }  # fmt: skip
