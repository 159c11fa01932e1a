"""Admission on the pages of streams: outlook, characteristics, split nodes and what-if."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpResponse

from algorithms.admission.metadata import (
    CHARACTERISTICS,
    Characteristic,
    StreamMetadata,
    Transition,
)
from controlplane.access.roles import require_operator
from controlplane.catalog.characteristics import checked
from controlplane.catalog.streams import stream_by_id
from controlplane.errors import Conflict, Fields, Invalid
from controlplane.models import Cluster, Stream
from controlplane.numbers import result
from controlplane.planners.admission.outlook import StreamOutlook, measured_characteristics
from controlplane.planners.admission.split_nodes import SplitNodeRow, split_node_table
from controlplane.planners.admission.what_if import SplitNodeReplay, WhatIf, admit
from controlplane.topology import characteristics, split_nodes
from controlplane.wire.routing.split_assignment import SourcePartition
from dashboard.dialog_forms import cluster_dialog, faults_by_field
from dashboard.forms import number_or, optional, read, whole
from dashboard.guards import PageRequest, cluster_page
from dashboard.responses import cluster_change, render_page
from dashboard.thresholds import LOAD

SHOWN_REDIRECTIONS: Final = 12
_HOURS: Final = 24
# A relative difference of declared and measured value that a person should look at.
_FAR: Final = 0.25


@dataclass(frozen=True)
class CharacteristicRow:
    """A characteristic in its form: what is declared and measured; `difference` relative."""

    item: Characteristic
    value: str
    measured: str
    difference: float | None
    faults: list[str]

    @property
    def is_off(self) -> bool:
        """Return True if the measured value is far from the declared one."""
        return self.difference is not None and abs(self.difference) > _FAR

    @property
    def change(self) -> str:
        """Return the difference as text, with its sign."""
        return "" if self.difference is None else f"{self.difference:+.0%}"


@dataclass(frozen=True)
class HourCell:
    """The load of a split node over its capacity in an hour of the day; None: not known."""

    hour: int
    share: float | None

    @property
    def level(self) -> int:
        """Return the level of the colour, from 0 to 4."""
        share = self.share or 0.0
        return sum(share > bound for bound in (0.5, 0.65, 0.8, 1.0))


def split_nodes_context(
    cluster: Cluster, rows: Sequence[SplitNodeRow] | None = None
) -> dict[str, Any]:
    """Return the context of the table of split nodes."""
    rows = split_node_table(cluster) if rows is None else rows
    shown = [
        {"row": row, "grade": LOAD.grade(row.share), "width": min(100, 100 * (row.share or 0))}
        for row in rows
    ]
    return {"split_nodes": shown, "next_split": len(rows)}


def characteristics_context(
    stream: Stream,
    values: Mapping[str, str] | None = None,
    errors: Fields | None = None,
    outlook: StreamOutlook | None = None,
) -> dict[str, Any]:
    """Return the context of the form of characteristics: as declared, or as submitted."""
    measured = measured_characteristics(stream, outlook)
    shown = measured.metadata.to_json()
    declared = stream.characteristics
    rows = [
        CharacteristicRow(
            item,
            _text(declared.get(item.name)) if values is None else values.get(item.name, ""),
            result(value) if (value := shown.get(item.name)) is not None else "",
            _difference(declared.get(item.name), shown.get(item.name)),
            list((errors or {}).get(item.name, ())),
        )
        for item in CHARACTERISTICS
    ]
    return {
        "stream": stream, "characteristics": rows, "transitions": list(Transition),
        "strength": measured.strength,
    }  # fmt: skip


def what_if_form(values: Mapping[str, str], errors: Fields) -> dict[str, Any]:
    """Return the context of the form of a new stream's characteristics."""
    rows = [
        CharacteristicRow(
            item, values.get(item.name, ""), "", None, list(errors.get(item.name, ()))
        )
        for item in CHARACTERISTICS
    ]
    is_described = any(row.value or row.faults for row in rows[1:])
    return {
        "what_if_fields": rows, "transitions": list(Transition), "is_described": is_described,
    }  # fmt: skip


@cluster_page
def list_split_nodes(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Render the table of split nodes."""
    return render_page(request, "_split_nodes.html", split_nodes_context(cluster))


@cluster_dialog(
    "stream", "pk", form="_stream_characteristics.html", field="rate",
    context=lambda cluster, pk: {"stream": stream_by_id(cluster, pk).stream},
    refused=lambda shown: characteristics_context(
        shown["stream"], shown["values"], shown["errors"]
    ),
)  # fmt: skip
def declare_characteristics(request: PageRequest, cluster: Cluster, pk: int) -> str:
    """Declare the characteristics of a stream; empty fields are not declared any more."""
    stream = stream_by_id(cluster, pk).stream
    if "measured" in request.POST:
        values = measured_characteristics(stream).metadata.to_json()
        # The newest rate is of no use for a stream that already has rates.
        values.pop("rate", None)
    else:
        values = submitted_characteristics(request.POST.dict())
    reason = request.POST.get("reason", "")
    characteristics.set_characteristics(request.actor, stream, values, reason)
    return f"The characteristics of {stream.name} are declared: the next plan uses them."


@cluster_change("stream", "pk")
def redirect_stream(request: PageRequest, cluster: Cluster, pk: int) -> str:
    """Redirect a stream to another split node."""
    require_operator(request.actor, cluster)
    stream = stream_by_id(cluster, pk).stream
    values = read(request.POST, split=whole, partition=optional(whole, None))
    target, partition, reason = values["split"], values["partition"], request.POST.get("reason", "")
    split_nodes.redirect(request.actor, stream, target, reason, partition)
    place, name = SourcePartition(pk, partition), stream.name
    name = name if partition is None else f"{place.text.capitalize()} of {name}"
    return f"{name} is read by split node {target} from the next micro-batch on."


@cluster_change("streams")
def set_split_capacity(request: PageRequest, cluster: Cluster) -> str:
    """Declare the capacity of every split node."""
    reader = optional(number_or("Enter a number of records/s"), 0.0)
    capacity = read(request.POST, capacity=reader)["capacity"]
    emulated, reason = "emulated" in request.POST, request.POST.get("reason", "")
    split_nodes.set_split_capacity(
        request.actor, cluster, capacity, emulated=emulated, reason=reason
    )
    text = f"{capacity:,.0f} records/s" if capacity else "measured"
    return f"Capacity of every split node: {text}."


@cluster_page
def what_if(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Render what the admission of a stream with the given characteristics would do."""
    values = request.GET.dict()
    try:
        metadata = StreamMetadata.from_json(checked(submitted_characteristics(values), ""))
        answer = admit(cluster, metadata)
    except (Invalid, Conflict) as refusal:
        errors = faults_by_field(refusal, "what_if")
        general = [text for name, texts in errors.items() if name not in _NAMES for text in texts]
        context = what_if_form(values, errors) | {"general": general}
        return render_page(request, "_what_if.html", context, status=422)
    context = what_if_form(values, {}) | {"result": answer, "heat": heat_rows(answer)}
    known = [cell for cell in _cells(answer.chosen, answer.capacity) if cell.share is not None]
    context["fullest"] = max(known, key=lambda cell: cell.share or 0.0, default=None)
    context["admit_query"] = urlencode({name: text for name, text in values.items() if text})
    return render_page(request, "_what_if.html", context)


_NAMES: Final = frozenset(item.name for item in CHARACTERISTICS)


def heat_rows(answer: WhatIf) -> list[dict[str, Any]]:
    """Return the load by hour of each split node with the stream, by index."""
    replays = sorted((answer.chosen, *answer.others), key=lambda replay: replay.split)
    return [
        {
            "replay": replay,
            "chosen": replay.split == answer.split,
            "cells": _cells(replay, answer.capacity),
        }
        for replay in replays
    ]


def _cells(replay: SplitNodeReplay, capacity: float) -> list[HourCell]:
    known = {row.hour: 1 - row.least / capacity for row in replay.headroom}
    return [HourCell(hour, known.get(hour)) for hour in range(_HOURS)]


def submitted_characteristics(values: Mapping[str, str]) -> dict[str, Any]:
    """Return the characteristics that a form has, by name. Raises `Invalid` by field."""
    numbers = number_or("Enter a number")
    given = [item for item in CHARACTERISTICS if values.get(item.name, "").strip()]
    return read(values, **{item.name: str if item.limit is None else numbers for item in given})


def _text(value: float | str | None) -> str:
    return f"{value:.6g}" if isinstance(value, float) else value or ""


def _difference(declared: Any, measured: Any) -> float | None:
    if not (isinstance(declared, float) and isinstance(measured, float) and declared):
        return None
    return measured / declared - 1
