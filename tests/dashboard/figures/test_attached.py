"""The charts of an attached query."""

import json
from typing import Any

import plotly.graph_objects as go
import pytest

from dashboard.figures.attached import attached_figures, phase_names
from tests.dashboard.figures.test_figures import coloured

NAMES = ["KafkaV2[Subscribe[orders]], records", "RateStreamV2"]


def progress(count: int, step_ms: int = 1000, **changed: Any) -> list[dict[str, Any]]:
    """Return batches of half a second."""
    return [
        {
            "t": i * step_ms, "batch": i, "rows": 50, "input": 25.0, "processed": 100.0,
            "duration_ms": 500, "state_rows": 10 + i, "state_bytes": 2_000_000,
            "state_dropped": 0, "watermark_ms": None, "lags": [12.0, None],
            "phases": {"latestOffset": 1, "getBatch": 2, "queryPlanning": 90, "walCommit": 40,
                       "addBatch": 300, "commitOffsets": 30, "triggerExecution": 470},
        } | changed
        for i in range(count)
    ]  # fmt: skip


def figures(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return attached_figures(rows, NAMES, 0, 60_000)


def by_name(figure: dict[str, Any]) -> dict[str, Any]:
    return {trace["name"]: trace for trace in figure["data"]}


@pytest.mark.parametrize("rows", [progress(0), progress(1), progress(50), progress(3000)])
def test_plotly_accepts_every_figure(rows: list[dict[str, Any]]) -> None:
    for figure in figures(rows).values():
        shown = coloured(figure)
        assert go.Figure(data=shown["data"], layout=shown["layout"]).data
        assert json.dumps(figure, allow_nan=False)
        assert all(len(trace["x"]) == len(trace["y"]) <= 900 for trace in figure["data"])


def test_phases_add_up_to_what_spark_measured() -> None:
    """The largest by name, the small ones summed; the whole is not a part of itself."""
    traces = by_name(figures(progress(2))["duration"])
    assert set(traces) == {
        "queryPlanning", "walCommit", "addBatch", "commitOffsets", "other", "batch",
    }  # fmt: skip
    stacked = [trace["y"][0] for trace in traces.values() if trace.get("stackgroup")]
    assert sum(stacked) == 463
    assert traces["other"]["y"][0] == 3
    assert traces["batch"]["y"] == [500, 500]


def test_phases_keep_sparks_order() -> None:
    assert phase_names(progress(1)) == ["queryPlanning", "walCommit", "addBatch", "commitOffsets"]


def test_long_batches_are_drawn_in_seconds() -> None:
    drawn = figures(progress(2, duration_ms=30_000))["duration"]
    assert by_name(drawn)["batch"]["y"] == [30.0, 30.0]
    assert drawn["layout"]["yaxis"]["title"]["text"] == "s"


def test_a_peak_survives_thinning() -> None:
    rows = progress(5000)
    rows[1234]["duration_ms"] = 9000
    assert max(by_name(figures(rows)["duration"])["batch"]["y"]) == 9000


def test_lines_break_where_nothing_was_told() -> None:
    """A job that was away for ten minutes did not run evenly through them."""
    later = [one | {"t": one["t"] + 600_000} for one in progress(3)]
    drawn = by_name(figures(progress(3) + later)["rates"])["input"]
    assert drawn["y"] == [25.0] * 3 + [None, None] + [25.0] * 3


def test_a_row_a_minute_is_no_gap() -> None:
    """What is older than a quarter of an hour is kept so."""
    recent = [one | {"t": one["t"] + 300_000} for one in progress(60)]
    assert None not in by_name(figures(progress(5, 60_000) + recent)["rates"])["input"]["y"]


def test_rows_and_memory_of_the_state_have_an_axis_each() -> None:
    drawn = figures(progress(3))
    assert by_name(drawn["state"])["rows"]["y"] == [10, 11, 12]
    assert by_name(drawn["memory"])["memory"]["y"] == [2.0] * 3
    assert not any(
        name.startswith("yaxis2") for chart in drawn.values() for name in chart["layout"]
    )


def test_without_state_and_lag_their_charts_are_left_out() -> None:
    bare = progress(3, state_rows=None, state_bytes=None, lags=[])
    assert set(figures(bare)) == {"rates", "duration"}


def test_each_source_that_tells_has_a_line_of_lag() -> None:
    assert set(by_name(figures(progress(3))["lag"])) == {NAMES[0]}
