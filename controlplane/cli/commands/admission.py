"""weir streams and clusters: split nodes, characteristics, redirections, outlooks and what-if."""

from argparse import Namespace
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from algorithms.admission.metadata import CHARACTERISTICS
from controlplane.cli.backends import api_of
from controlplane.cli.backends.interface import cluster_path, stream_path
from controlplane.cli.codes import Code, Refused
from controlplane.cli.output import (
    print_answer,
    print_facts,
    print_json,
    print_rows,
    print_sentence,
)

_SPLIT_COLUMNS: Final = {
    "split node": ("index", "number"), "streams": ("streams", "number"),
    "capacity": ("capacity", "number"), "load": ("load", "number"),
    "expected": ("expected", "number"), "waiting": ("waiting", "number"),
    "latency ms": ("latency_ms", "number"),
}  # fmt: skip
_REDIRECTION_COLUMNS: Final = {
    "at": ("at", "text"), "from": ("source", "number"), "to": ("target", "number"),
    "by": ("actor", "name"), "reason": ("reason", "text"),
}  # fmt: skip
_OUTLOOK_COLUMNS: Final = {
    "from": ("start", "text"), "forecast": ("forecast", "number"), "low": ("low", "number"),
    "high": ("high", "number"), "expected": ("expected", "number"), "left": ("left", "number"),
}  # fmt: skip
_REPLAY_COLUMNS: Final = {
    "split node": ("split", "number"), "least left": ("least", "number"),
    "overload": ("probability", "number"), "first": ("first_overload", "text"),
}  # fmt: skip
_CHARACTERISTIC_COLUMNS: Final = {
    "characteristic": ("name", "name"), "unit": ("unit", "text"),
    "declared": ("declared", "text"), "measured": ("measured", "text"),
}  # fmt: skip


def list_split_nodes(given: Namespace) -> None:
    """Print the split nodes of a cluster."""
    print_rows(given, api_of(given).get(f"{cluster_path(given)}/split-nodes"), _SPLIT_COLUMNS)


def declare_split_capacity(given: Namespace) -> None:
    """Declare the capacity of every split node."""
    values = {"capacity": given.capacity, "emulated": given.emulated, "reason": given.reason}
    rows = api_of(given).post(f"{cluster_path(given)}/split-capacity", **values)
    print_rows(given, rows, _SPLIT_COLUMNS)


def characteristics(given: Namespace) -> None:
    """Print the characteristics of a stream, or declare them."""
    api, path = api_of(given), f"{stream_path(given)}/characteristics"
    row = api.get(path)
    if given.values:
        changed = row["declared"] | _given(given)
        kept = {name: value for name, value in changed.items() if value is not None}
        stream = api.request("PUT", path, body=kept | {"reason": given.reason})
        row["declared"] = stream["characteristics"]
    if given.json:
        print_json(row)
        return
    declared, measured = row["declared"], row["measured"]
    rows = [
        {
            "name": item.name, "unit": item.unit, "declared": _number(declared.get(item.name)),
            "measured": _number(measured.get(item.name)),
        }
        for item in CHARACTERISTICS
    ]  # fmt: skip
    print_rows(given, rows, _CHARACTERISTIC_COLUMNS)


def _given(given: Namespace) -> dict[str, Any]:
    """Return the characteristics of a call by name, None for those without a value."""
    values: dict[str, Any] = {}
    for text in given.values:
        name, sign, value = text.partition("=")
        if not sign:
            message = f"{text}: must be NAME=VALUE"
            raise Refused(Code.WRONG, message, advice="as average=60")
        values[name] = _parsed(value)
    return values


def _parsed(value: str) -> float | str | None:
    """Return a number if the text is one; the check of characteristics refuses the rest."""
    try:
        return float(value) if value else None
    except ValueError:
        return value


def _number(value: Any) -> str | None:
    return f"{value:,.10g}" if isinstance(value, float) else value


def redirect_stream(given: Namespace) -> None:
    """Redirect a stream to another split node."""
    path = f"{stream_path(given)}/redirect"
    stream = api_of(given).post(path, split=given.split, reason=given.reason)
    values = {name: stream[name] for name in ("name", "split")}
    text = f"{stream['name']} is read by split node {stream['split']}"
    print_answer(given, values, text)


def list_redirections(given: Namespace) -> None:
    """Print the redirections of a stream, newest first."""
    rows = api_of(given).get(f"{stream_path(given)}/redirections")
    print_rows(given, rows, _REDIRECTION_COLUMNS, "the stream was never redirected")


def show_outlook(given: Namespace) -> None:
    """Print the forecast of a stream."""
    outlook = api_of(given).get(f"{stream_path(given)}/outlook")
    if given.json:
        print_json(outlook)
        return
    if outlook is None:
        print_sentence("no records have arrived yet")
        return
    left = outlook["left"] or [None] * len(outlook["forecast"])
    starts = [f"{datetime.fromisoformat(start):%H:%M:%S}" for start in outlook["next_starts"]]
    names = ("start", "forecast", "low", "high", "expected", "left")
    columns = (starts, *(outlook[name] for name in names[1:-1]), left)
    rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    print_rows(given, rows, _OUTLOOK_COLUMNS)


def admit_what_if(given: Namespace) -> None:
    """Print what the admission of a stream with these characteristics would do."""
    result = api_of(given).post(f"{cluster_path(given)}/streams/what-if", **_given(given))
    if given.json:
        print_json(result)
        return
    split = str(result["split"])
    print_facts({
        "split node": f"{split}, opened for it" if result["opened"] else split,
        "expected load": result["load"], "capacity": result["capacity"],
    })  # fmt: skip
    rows = [_replay(row) for row in (result["chosen"], *result["others"])]
    print_rows(given, rows, _REPLAY_COLUMNS)


def _replay(row: Mapping[str, Any]) -> dict[str, Any]:
    first = row["first_overload"]
    return {
        "split": row["split"],
        "least": min((hour["least"] for hour in row["headroom"]), default=None),
        "probability": row["probability"],
        "first_overload": first and f"{datetime.fromisoformat(first):%d %b %H:%M}",
    }
