"""Charts of the proof: measured, approved, expected, and "without this plan" over time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import numpy as np

from controlplane.planning.measures import FULLEST, IMBALANCE, REPLICATION_FACTOR, TRAFFIC, Measure
from controlplane.proposals.counterfactual import Counterfactual
from dashboard.figures.parts import (
    Figure,
    Trace,
    figure,
    interval,
    limit_notes,
    limit_shapes,
    ms,
    scatter,
    time_axis,
    value_axis,
)

# By measure: format of ticks and of numbers in words.
_FORMATS: Final[Mapping[str, tuple[Measure, str, str]]] = {
    IMBALANCE.name: (IMBALANCE, ".0%", ".0%"),
    FULLEST.name: (FULLEST, ".0%", ".0%"),
    REPLICATION_FACTOR.name: (REPLICATION_FACTOR, ".2f", ".2f"),
    TRAFFIC.name: (TRAFFIC, ",.0f", ",.0f"),
}


@dataclass(frozen=True, eq=False)
class Proof:
    """The values of a proof.

    `begin`, `end`: of the execution; `approved`, `expected`: figures by name; `limits`: of the
    policy by measure.
    """

    number: int
    series: Counterfactual
    begin: datetime
    end: datetime
    approved: Mapping[str, float]
    expected: Mapping[str, float]
    limits: Mapping[str, float]


def proof_figures(proof: Proof) -> dict[str, Figure]:
    """Return one chart per measure that was measured."""
    return {
        name: _figure(proof, name)
        for name in _FORMATS
        if not np.isnan(proof.series.measured[name]).all()
    }


def _figure(proof: Proof, name: str) -> Figure:
    measure, ticks, words = _FORMATS[name]
    series = proof.series
    times = [ms(start) for start in series.starts]
    ended = ms(proof.end)
    measured = _listed(series.measured[name])
    without = [
        value if time >= ended else None
        for time, value in zip(times, _listed(series.without[name]), strict=True)
    ]
    traces = [*_band(proof, name, times, without), *_lines(name, times, measured, without, words)]
    traces += _approved(proof, name, times, words)
    known = [value for value in (*measured, *without) if value is not None]
    limit = proof.limits.get(name)
    approved = [proof.approved[name]] if name in proof.approved else []
    top = 1.12 * max([*known, *approved, limit or 0.0, 0.01])
    return figure(
        traces,
        xaxis=time_axis(),
        yaxis=value_axis(measure.title, tickformat=ticks, range=[0, top]),
        shapes=[*limit_shapes(limit, top), _began(proof)],
        annotations=[*limit_notes(limit, words), _flag(proof)],
        margin={"l": 56, "r": 12, "t": 56, "b": 28},
        meta={"finding": _finding(proof, name, words)},
    )


def _lines(
    name: str, times: Sequence[int], measured: Sequence[Any], without: Sequence[Any], words: str
) -> list[Trace]:
    hover = f"%{{y:{words}}}"
    look = {"color": "--series-1", "width": 1.8}
    other = {"color": "--series-4", "width": 1.8, "dash": "dash"}
    return [
        scatter("measured", times, measured, line=look, hovertemplate=hover, connectgaps=False),
        scatter("without this plan", times, without, line=other, hovertemplate=hover,
                connectgaps=False),
    ]  # fmt: skip


def _band(proof: Proof, name: str, times: Sequence[int], without: Sequence[Any]) -> list[Trace]:
    """Return the interval of the counterfactual: the errors of its model since the end."""
    half = proof.series.interval(name, proof.end)
    if half is None:
        return []
    low = [None if value is None else max(0.0, value - half) for value in without]
    high = [None if value is None else value + half for value in without]
    look = {"fillcolor": "--line", "opacity": 0.2, "showlegend": False}
    return interval("80 % interval", times, low, high, **look)


def _approved(proof: Proof, name: str, times: Sequence[int], words: str) -> list[Trace]:
    approved, expected = proof.approved.get(name), proof.expected.get(name)
    ended = ms(proof.end)
    traces = []
    if expected is not None and times:
        look = {"color": "--series-2", "width": 1.6, "dash": "dot"}
        traces.append(
            scatter("expected for what was applied", [ended, max(times[-1], ended)],
                    [expected, expected], line=look, hovertemplate=f"%{{y:{words}}}")
        )  # fmt: skip
    if approved is not None:
        marker = {
            "color": "--series-5",
            "size": 11,
            "symbol": "circle-open",
            "line": {"width": 2.5},
        }
        traces.append(
            scatter("approved", [ended], [approved], "markers", marker=marker,
                    hovertemplate=f"%{{y:{words}}}")
        )  # fmt: skip
    return traces


def _began(proof: Proof) -> dict[str, Any]:
    begin, end = (ms(moment) for moment in (proof.begin, proof.end))
    return {
        "type": "rect", "yref": "paper", "y0": 0, "y1": 1, "x0": begin, "x1": max(end, begin + 1),
        "line": {"width": 0}, "fillcolor": "--muted", "opacity": 0.15, "layer": "below",
    }  # fmt: skip


def _flag(proof: Proof) -> dict[str, Any]:
    return {
        "x": round(proof.begin.timestamp() * 1000), "xref": "x", "y": 1, "yref": "paper",
        "text": f"◆ {proof.number}", "showarrow": False, "yanchor": "top",
        "font": {"size": 11, "color": "--ink"},
    }  # fmt: skip


def _finding(proof: Proof, name: str, words: str) -> str:
    """Return the chart in one sentence."""
    measure, *_ = _FORMATS[name]
    after = [start >= proof.end for start in proof.series.starts]
    values = proof.series.measured[name][after]
    parts = []
    if len(values) and not np.isnan(values).all():
        parts.append(f"measured {np.nanmean(values):{words}} after the execution")
    if (approved := proof.approved.get(name)) is not None:
        parts.append(f"approved {approved:{words}}")
    if (without := proof.series.mean_without(name, proof.end)) is not None:
        parts.append(f"without this plan {without:{words}}")
    return f"{measure.title}: {', '.join(parts)}"


def _listed(values: Any) -> list[float | None]:
    return [None if np.isnan(value) else round(float(value), 5) for value in values]
