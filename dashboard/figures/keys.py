"""The charts of the skew of a query's keys over time: shares of keys, and imbalance."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from controlplane.numbers import percent
from controlplane.planners.partitioning.key_report import SkewPoint
from dashboard.figures.parts import (
    Figure,
    Trace,
    end_label,
    figure,
    fitted,
    level,
    limit_shapes,
    ms,
    scatter,
    time_axis,
    value_axis,
    vertical,
    vertical_label,
    without_values,
)
from dashboard.figures.thinning import Sample, with_gaps

# The shortest time of a chart; fewer points than this have marks of their own.
_LEAST_MS: Final = 5 * 60_000
_FEW: Final = 4
_EMPTY: Final = "No history yet: the first point is stored within a minute"


def skew_figures(
    history: Sequence[SkewPoint],
    titles: Mapping[str, str],
    *,
    holds: float | None,
    unit: str,
    limit: float,
    shown: tuple[int, int] | None = None,
) -> dict[str, Figure]:
    """Return the charts `skew` and `imbalance`.

    `titles`: of key groupings by name. `holds`: the share of the records that the largest task
    holds, None if it is not known; `unit`: task, or node. `limit`: of the imbalance, a share of
    capacity. `shown`: the time range of the axis in ms since the epoch, None: that of the history.
    """
    if not history:
        return dict.fromkeys(("skew", "imbalance"), without_values(_EMPTY))
    samples = with_gaps([_sample(point) for point in history])
    changes = _changes(history, titles)
    figures = {
        "skew": _skew(samples, history, (holds, unit), changes),
        "imbalance": _imbalance(samples, history, limit, changes),
    }
    if shown is not None:
        for drawn in figures.values():
            drawn["layout"]["xaxis"]["range"] = fitted(shown, ms(history[0].time))
    return figures


def _sample(point: SkewPoint) -> Sample:
    return {
        "t": ms(point.time), "top": point.top_share, "top10": point.top10_share,
        "imbalance": point.imbalance,
    }  # fmt: skip


def _changes(history: Sequence[SkewPoint], titles: Mapping[str, str]) -> list[tuple[int, str]]:
    """Return the times at which the key grouping changed, with its title."""
    return [
        (ms(after.time), titles.get(after.grouping, after.grouping))
        for before, after in pairwise(history)
        if before.grouping != after.grouping
    ]


def _skew(
    samples: Sequence[Sample],
    history: Sequence[SkewPoint],
    largest: tuple[float | None, str],
    changes: Sequence[tuple[int, str]],
) -> Figure:
    first, last = history[0], history[-1]
    holds, unit = largest
    shapes, labels = _events(changes)
    if holds is not None and holds <= 1:
        shapes.append(level(holds, "--muted", "dot"))
        labels.append(_level_label(holds, f"one {unit} holds {percent(holds)}", "--muted"))
    ends = _apart([last.top_share, last.top10_share], 0.09)
    labels += [
        end_label(ends[0], f"largest {percent(last.top_share)}", "--series-1"),
        end_label(ends[1], f"ten {percent(last.top10_share)}", "--series-4"),
    ]
    finding = (
        f"Share of the most frequent key: {percent(last.top_share)},"
        f" {percent(first.top_share)} at the start;"
        f" of the ten most frequent keys: {percent(last.top10_share)}"
    )
    lines = [
        _line("largest key", "top", samples, "--series-1", {"width": 1.8}),
        _line("ten largest", "top10", samples, "--series-4", {"width": 1.6, "dash": "dash"}),
    ]
    axis = value_axis("share of records", tickformat=".0%", range=[0, 1])
    return _over_time(lines, samples, axis, shapes, labels, finding)


def _imbalance(
    samples: Sequence[Sample],
    history: Sequence[SkewPoint],
    limit: float,
    changes: Sequence[tuple[int, str]],
) -> Figure:
    scaled = [
        {"t": sample["t"]}
        | ({"imbalance": 100 * sample["imbalance"]} if "imbalance" in sample else {})
        for sample in samples
    ]
    last, most = 100 * history[-1].imbalance, 100 * max(point.imbalance for point in history)
    top = max(1.5 * 100 * limit, 1.15 * most, 1.0)
    shapes, labels = _events(changes)
    if limit:
        shapes += limit_shapes(100 * limit, top)
        labels.append(_level_label(100 * limit, f"limit {100 * limit:.0f} points", "--limit"))
    labels.append(end_label(last, f"{last:.1f}" if last < 9.95 else f"{last:.0f}", "--series-1"))  # noqa: PLR2004
    finding = (
        f"Imbalance: {last:.1f} points of capacity, at most {most:.1f} in this time;"
        f" limit {100 * limit:.0f} points"
    )
    drawn = _line("imbalance", "imbalance", scaled, "--series-1", {"width": 1.8})
    axis = value_axis("points of capacity", range=[0, top])
    hover = {"hovertemplate": "%{y:.1f} points"}
    return _over_time([drawn | hover], samples, axis, shapes, labels, finding)


def _over_time(
    lines: Sequence[Trace],
    samples: Sequence[Sample],
    axis: dict[str, Any],
    shapes: Sequence[dict[str, Any]],
    labels: Sequence[dict[str, Any]],
    finding: str,
) -> Figure:
    last = samples[-1]["t"]
    # Around a single moment Plotly would label parts of a millisecond.
    ends = {"range": [min(samples[0]["t"], last - _LEAST_MS), last]}
    return figure(
        lines,
        xaxis=time_axis() | ends,
        yaxis=axis,
        shapes=list(shapes),
        annotations=list(labels),
        showlegend=False,
        margin={"l": 52, "r": 92, "t": 22, "b": 28},
        meta={"finding": finding},
    )


def _line(
    name: str, field: str, samples: Sequence[Sample], color: str, look: Mapping[str, Any]
) -> Trace:
    return scatter(
        name,
        [sample["t"] for sample in samples],
        [sample.get(field) for sample in samples],
        "lines+markers" if len(samples) < _FEW else "lines",
        line={"color": color, **look},
        connectgaps=False,
        hovertemplate="%{y:.1%}",
    )


def _events(
    changes: Sequence[tuple[int, str]],
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    return (
        [vertical(t, "--accent") for t, _ in changes],
        [vertical_label(t, title, "--accent") for t, title in changes],
    )


def _level_label(value: float, text: str, color: str) -> dict[str, Any]:
    return {
        "xref": "paper", "x": 0.01, "xanchor": "left", "y": value, "yanchor": "bottom",
        "text": text, "showarrow": False, "font": {"size": 11, "color": color},
    }  # fmt: skip


def _apart(values: Sequence[float], least: float) -> list[float]:
    """Return the heights of two labels, the second at least `least` above the first."""
    low, high = values
    return (
        [low, high] if high - low >= least else [(low + high - least) / 2, (low + high + least) / 2]
    )
