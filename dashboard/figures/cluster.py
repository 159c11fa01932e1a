"""The live charts of a cluster: loads, balance, replication, latency and rates."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from controlplane.wire.figures import figure_of
from dashboard import thresholds
from dashboard.figures.parts import (
    Figure,
    Trace,
    VersionMark,
    category_axis,
    figure,
    line,
    marks_axis,
    value_axis,
    version_labels,
    version_marks,
)
from dashboard.figures.thinning import Sample

LOADS: Final = figure_of("loads")
# Load over capacity where the colours end: above it all is equally too much.
FULL_SCALE = 1.2
NAMED_ROWS = 12
# Calm up to the first limit, then watch, then act; steps where the meaning changes.
LOAD_SCALE = [
    [0.0, "--load-0"],
    [thresholds.LOAD.warn / FULL_SCALE, "--load-1"],
    [thresholds.LOAD.warn / FULL_SCALE, "--load-2"],
    [thresholds.LOAD.bad / FULL_SCALE, "--load-3"],
    [thresholds.LOAD.bad / FULL_SCALE, "--load-4"],
    [1.0, "--load-4"],
]


@dataclass(frozen=True)
class NodeSeries:
    """A node in a chart; capacity in records/s."""

    index: int
    name: str
    capacity: float


def cluster_figures(
    samples: Sequence[Sample], nodes: Sequence[NodeSeries], marks: Sequence[VersionMark]
) -> dict[str, Figure]:
    """Return every chart of the cluster page by its name."""
    return {
        "heat": heat(samples, nodes),
        "bars": bars(samples[-1] if samples else {}, nodes),
        "imbalance": imbalance(samples, marks),
        "replication": replication(samples, marks),
        "latency": latency(samples, marks),
        "rates": rates(samples, marks),
    }


def heat(samples: Sequence[Sample], nodes: Sequence[NodeSeries]) -> Figure:
    """Draw load over capacity per node (rows) over time (columns)."""
    trace: Trace = {
        "type": "heatmap",
        "x": [sample["t"] for sample in samples],
        "y": [node.name for node in nodes],
        "z": [[share(sample, node) for sample in samples] for node in nodes],
        "zmin": 0,
        "zmax": FULL_SCALE,
        "colorscale": LOAD_SCALE,
        "showscale": False,
        "ygap": 2,
        "hovertemplate": "%{y}: %{z:.0%} of capacity<br>%{x|%H:%M:%S}<extra></extra>",
        "meta": {
            "heat": [node.index for node in nodes],
            "capacity": [node.capacity for node in nodes],
        },
    }
    # Every name is shown while there is room for a line of text each.
    ticks = {"dtick": 1} if len(nodes) <= NAMED_ROWS else {}
    rows = category_axis() | {"autorange": "reversed", "linecolor": "--clear"} | ticks
    return figure([trace], hovermode="closest", yaxis=rows)


def bars(sample: Sample, nodes: Sequence[NodeSeries]) -> Figure:
    """Draw the newest load per node (records/s) against its declared capacity."""
    names = [node.name for node in nodes]
    shares = [share(sample, node) or 0.0 for node in nodes]
    capacity: Trace = {
        "type": "bar",
        "name": "capacity",
        "x": names,
        "y": [node.capacity for node in nodes],
        "width": 0.78,
        "marker": {"color": "--sunken", "line": {"color": "--line-strong", "width": 1}},
        "hovertemplate": f"%{{y:,.3~r}} {LOADS.unit}",
    }
    load: Trace = {
        "type": "bar",
        "name": LOADS.label,
        "x": names,
        "y": [load_of(sample, node) for node in nodes],
        "width": 0.5,
        "marker": {"color": shares, "colorscale": LOAD_SCALE, "cmin": 0, "cmax": FULL_SCALE},
        "hovertemplate": f"%{{y:,.3~r}} {LOADS.unit} (%{{marker.color:.0%}} of capacity)",
        "meta": {
            LOADS.name: [node.index for node in nodes],
            "capacity": [node.capacity for node in nodes],
        },
    }
    return figure(
        [capacity, load],
        barmode="overlay",
        xaxis=category_axis(),
        yaxis=_axis(LOADS.name),
        showlegend=False,
    )


def imbalance(samples: Sequence[Sample], marks: Sequence[VersionMark]) -> Figure:
    """Draw the most loaded node's load over capacity, minus the mean over nodes."""
    drawn = _line("imbalance", samples, "--chart-1", hovertemplate="%{y:.1%}")
    axis = _axis("imbalance", tickformat=".0%")
    return _over_time([drawn], marks, axis, shapes=[limit_line(thresholds.IMBALANCE.bad, "--bad")])


def replication(samples: Sequence[Sample], marks: Sequence[VersionMark]) -> Figure:
    """Draw delivered over source traffic, with its lower bound 1."""
    drawn = _line("rf", samples, "--chart-1", hovertemplate="%{y:.3f}")
    bound = limit_line(1.0, "--muted", "lower bound 1")
    return _over_time([drawn], marks, _axis("rf", rangemode="normal", minallowed=0.9), [bound])


def latency(samples: Sequence[Sample], marks: Sequence[VersionMark]) -> Figure:
    """Draw the percentiles of the time from the log to the result, in ms."""
    lines = [
        _line("p50", samples, "--chart-1", line={"dash": "dot"}),
        _line("p95", samples, "--chart-1", line={"width": 2}),
        _line("p99", samples, "--chart-3", line={"width": 1.2}),
    ]
    return _over_time(lines, marks, _axis("p95"))


def rates(samples: Sequence[Sample], marks: Sequence[VersionMark]) -> Figure:
    """Draw input records/s and records/s delivered to nodes."""
    lines = [
        _line("in", samples, "--chart-1", line={"width": 2}),
        _line("delivered", samples, "--chart-2", line={"dash": "dash"}),
    ]
    return _over_time(lines, marks, _axis("in"))


def _line(name: str, samples: Sequence[Sample], color: str, **more: Any) -> Trace:
    """Return a figure of the samples over time, with its declared label and unit."""
    declared = figure_of(name)
    return line(declared.label or declared.title, name, samples, color, declared.unit, **more)


def _axis(name: str, **more: Any) -> dict[str, Any]:
    """Return the axis of a figure, with its declared title."""
    declared = figure_of(name)
    return value_axis(declared.axis or declared.unit, **more)


def limit_line(value: float, color: str, text: str = "") -> dict[str, Any]:
    """Return a horizontal line over the whole width, with an optional name."""
    shape: dict[str, Any] = {
        "type": "line",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "y0": value,
        "y1": value,
        "line": {"color": color, "width": 1, "dash": "dash"},
        "layer": "below",
    }
    if text:
        font = {"size": 10, "color": color}
        shape["label"] = {"text": text, "textposition": "end", "yanchor": "top", "font": font}
    return shape


def share(sample: Sample, node: NodeSeries) -> float | None:
    """Return a node's load over its capacity, None if the sample does not have it."""
    load = load_of(sample, node)
    return None if load is None else load / node.capacity


def load_of(sample: Sample, node: NodeSeries) -> float | None:
    """Return a node's load in records/s, None if the sample does not have it."""
    loads: list[float] = sample.get(LOADS.name) or []
    return loads[node.index] if node.index < len(loads) else None


def _over_time(
    lines: Sequence[Trace],
    marks: Sequence[VersionMark],
    axis: dict[str, Any],
    shapes: Sequence[dict[str, Any]] = (),
) -> Figure:
    return figure(
        [*lines, version_marks(marks), version_labels(marks)],
        yaxis=axis,
        yaxis2=marks_axis(),
        shapes=list(shapes),
        showlegend=len(lines) > 1,
        margin={"l": 52, "r": 12, "t": 26 if len(lines) > 1 else 14, "b": 28},
    )
