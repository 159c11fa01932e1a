"""weir streams and clusters: split nodes, characteristics, redirections, outlooks and what-if."""

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from algorithms.admission.metadata import CHARACTERISTICS, StreamMetadata
from controlplane.admission.outlook import measured_characteristics, outlook_of
from controlplane.admission.redirections import redirections_of
from controlplane.admission.split_nodes import split_node_table
from controlplane.admission.what_if import SplitNodeReplay, admit
from controlplane.catalog.characteristics import checked
from controlplane.catalog.streams import stream_by_key
from controlplane.cli.actors import viewed
from controlplane.cli.codes import Code, Refused
from controlplane.cli.output import (
    print_answer,
    print_facts,
    print_json,
    print_rows,
    print_sentence,
    values_of,
)
from controlplane.models import Cluster
from controlplane.topology.characteristics import set_characteristics
from controlplane.topology.split_nodes import redirect, set_split_capacity

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
    _, cluster = viewed(given)
    _print_split_nodes(given, cluster)


def declare_split_capacity(given: Namespace) -> None:
    """Declare the capacity of every split node."""
    actor, cluster = viewed(given)
    cluster = set_split_capacity(
        actor, cluster, given.capacity, emulated=given.emulated, reason=given.reason
    )
    _print_split_nodes(given, cluster)


def _print_split_nodes(given: Namespace, cluster: Cluster) -> None:
    rows = [asdict(row) for row in split_node_table(cluster)]
    if given.json:
        print_json(rows)
        return
    print_rows(given, rows, _SPLIT_COLUMNS)


def characteristics(given: Namespace) -> None:
    """Print the characteristics of a stream, or declare them."""
    actor, cluster = viewed(given)
    stream = stream_by_key(cluster, given.stream)
    if given.values:
        changed = stream.characteristics | _given(given)
        kept = {name: value for name, value in changed.items() if value is not None}
        stream = set_characteristics(actor, stream, kept, given.reason)
    measured = measured_characteristics(stream).metadata.to_json()
    rows = [
        {
            "name": item.name, "unit": item.unit,
            "declared": _number(stream.characteristics.get(item.name)),
            "measured": _number(measured.get(item.name)),
        }
        for item in CHARACTERISTICS
    ]  # fmt: skip
    if given.json:
        print_json({"declared": stream.characteristics, "measured": measured})
        return
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
    actor, cluster = viewed(given)
    stream = redirect(actor, stream_by_key(cluster, given.stream), given.split, given.reason)
    text = f"{stream.name} is read by split node {stream.split}"
    print_answer(given, values_of(stream, "name split"), text)


def list_redirections(given: Namespace) -> None:
    """Print the redirections of a stream, newest first."""
    _, cluster = viewed(given)
    rows = [
        values_of(row, "at source target version reason actor")
        for row in redirections_of(stream_by_key(cluster, given.stream), 100)
    ]
    if given.json:
        print_json(rows)
        return
    print_rows(given, rows, _REDIRECTION_COLUMNS, "the stream was never redirected")


def show_outlook(given: Namespace) -> None:
    """Print the forecast of a stream."""
    _, cluster = viewed(given)
    outlook = outlook_of(stream_by_key(cluster, given.stream))
    if given.json:
        print_json(None if outlook is None else asdict(outlook))
        return
    if outlook is None:
        print_sentence("no records have arrived yet")
        return
    left: Sequence[float | None] = outlook.left or [None] * len(outlook.forecast)
    columns = (outlook.next_starts, outlook.forecast, outlook.low, outlook.high, outlook.expected)
    names = ("start", "forecast", "low", "high", "expected", "left")
    rows = [
        dict(zip(names, (row[0].strftime("%H:%M:%S"), *row[1:]), strict=True))
        for row in zip(*columns, left, strict=True)
    ]
    print_rows(given, rows, _OUTLOOK_COLUMNS)


def admit_what_if(given: Namespace) -> None:
    """Print what the admission of a stream with these characteristics would do."""
    _, cluster = viewed(given)
    metadata = StreamMetadata.from_json(checked(_given(given), ""))
    result = admit(cluster, metadata)
    if given.json:
        print_json(asdict(result))
        return
    print_facts({
        "split node": f"{result.split}, opened for it" if result.opened else str(result.split),
        "expected load": result.load, "capacity": result.capacity,
    })  # fmt: skip
    print_rows(given, [_replay(row) for row in (result.chosen, *result.others)], _REPLAY_COLUMNS)


def _replay(row: SplitNodeReplay) -> dict[str, Any]:
    return {
        "split": row.split,
        "least": min((hour.least for hour in row.headroom), default=None),
        "probability": row.probability,
        "first_overload": row.first_overload and row.first_overload.strftime("%d %b %H:%M"),
    }
