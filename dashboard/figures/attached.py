"""The charts of an attached query: rates, batch duration by phase, state and its memory, lag."""

from collections.abc import Mapping, Sequence
from typing import Any

from dashboard.figures.parts import COLORS, Figure, Trace, figure, line, time_axis, value_axis
from dashboard.figures.thinning import Sample, thin_samples, with_gaps

# The whole of a batch; the other phases are its parts.
WHOLE = "triggerExecution"
# More colours are indistinguishable; the others are summed.
NAMED_PHASES = 4
PHASE_COLORS = ("--chart-1", "--chart-4", "--chart-5", "--chart-7")
OTHER = "other"
# From so many ms on a duration is drawn in seconds.
IN_SECONDS = 10_000
# Older progress is one row a minute: up to here nothing is missing.
LEAST_GAP_MS = 150_000
EMPTY = {
    "text": "No batch in this time range",
    "xref": "paper", "yref": "paper", "x": 0.5, "y": 0.5, "showarrow": False,
}  # fmt: skip


def attached_figures(
    progress: Sequence[Mapping[str, Any]], sources: Sequence[str], start: int, end: int
) -> dict[str, Figure]:
    """Return the charts by name; sources are in the order of `lags`, times in ms.

    The charts of state and memory are left out for queries without state, that of the lag where no
    source reports one.
    """
    phases = phase_names(progress)
    flattened = [flat(sample, phases, len(sources)) for sample in progress]
    samples = with_gaps(thin_samples(flattened), LEAST_GAP_MS)
    drawn = {"rates": rates(samples), "duration": durations(samples, phases)}
    if any(sample["state_rows"] is not None for sample in progress):
        drawn["state"] = state(samples)
    if any(sample["state_bytes"] is not None for sample in progress):
        drawn["memory"] = memory(samples)
    if any(lag is not None for sample in progress for lag in sample["lags"]):
        drawn["lag"] = lags(samples, sources)
    for chart in drawn.values():
        chart["layout"]["xaxis"] = time_axis() | {"range": [start, end]}
    return drawn


def phase_names(progress: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the longest phases in Spark's order."""
    took: dict[str, int] = {}
    for sample in progress:
        for name, milliseconds in sample["phases"].items():
            took[name] = took.get(name, 0) + milliseconds
    took.pop(WHOLE, None)
    most = sorted(took, key=lambda name: -took[name])[:NAMED_PHASES]
    return [name for name in took if name in most]


def flat(nested: Mapping[str, Any], phases: Sequence[str], sources: int) -> Sample:
    """Return a progress as a sample with a measure per phase and source."""
    parts = {f"phase:{name}": nested["phases"].get(name, 0) for name in phases}
    whole = sum(took for name, took in nested["phases"].items() if name != WHOLE)
    given = list(nested["lags"])
    return {
        "t": nested["t"],
        "input": nested["input"],
        "processed": nested["processed"],
        "duration_ms": nested["duration_ms"],
        "state_rows": nested["state_rows"],
        "state_mb": None if nested["state_bytes"] is None else nested["state_bytes"] / 1e6,
        **parts,
        f"phase:{OTHER}": whole - sum(parts.values()),
        **{f"lag:{i}": given[i] if i < len(given) else None for i in range(sources)},
    }


def rates(samples: Sequence[Sample]) -> Figure:
    """Draw input rows/s and processed rows/s."""
    drawn = [
        line("input", "input", samples, "--chart-1", "/s", line={"width": 2}),
        line("processed", "processed", samples, "--chart-2", "/s", line={"dash": "dash"}),
    ]
    return _over_time(drawn, value_axis("rows/s"))


def durations(samples: Sequence[Sample], phases: Sequence[str]) -> Figure:
    """Draw the duration of batches by phase, with the total as a line."""
    longest = max((sample.get("duration_ms") or 0 for sample in samples), default=0)
    unit, scale = ("s", 1000.0) if longest >= IN_SECONDS else ("ms", 1.0)
    scaled = [_scaled(sample, scale) for sample in samples]
    stacked: list[Trace] = [
        line(name, f"phase:{name}", scaled, color, unit, stackgroup="phases", line={"width": 0})
        for name, color in [*zip(phases, PHASE_COLORS, strict=False), (OTHER, "--chart-3")]
    ]
    whole = line("batch", "duration_ms", scaled, "--ink", unit, line={"width": 1.2})
    return _over_time([*stacked, whole], value_axis(unit))


def state(samples: Sequence[Sample]) -> Figure:
    """Draw the number of rows in state."""
    drawn = [line("rows", "state_rows", samples, "--chart-1", "rows", line={"width": 2})]
    return _over_time(drawn, value_axis("rows"), showlegend=False)


def memory(samples: Sequence[Sample]) -> Figure:
    """Draw the memory of the state."""
    drawn = [line("memory", "state_mb", samples, "--chart-1", "MB", line={"width": 2})]
    return _over_time(drawn, value_axis("MB"), showlegend=False)


def lags(samples: Sequence[Sample], sources: Sequence[str]) -> Figure:
    """Draw the lag of each source that reports it."""
    drawn = [
        line(name, f"lag:{i}", samples, COLORS[i % len(COLORS)], "")
        for i, name in enumerate(sources)
        if any(sample.get(f"lag:{i}") is not None for sample in samples)
    ]
    return _over_time(drawn, value_axis("behind"))


def _scaled(sample: Sample, scale: float) -> Sample:
    return {
        name: value / scale if value is not None and name.startswith(("phase:", "dur")) else value
        for name, value in sample.items()
    }


def _over_time(drawn: Sequence[Trace], axis: dict[str, Any], **layout: Any) -> Figure:
    shared = {"yaxis": axis, "margin": {"l": 52, "r": 12, "t": 26, "b": 28}, "showlegend": True}
    if not any(trace["x"] for trace in drawn):
        shared |= {"annotations": [EMPTY], "showlegend": False}
    return figure(drawn, **(shared | layout))
