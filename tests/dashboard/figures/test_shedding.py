"""The charts of load shedding: colours of rungs, and labels of inputs."""

from datetime import UTC, datetime

from controlplane.planners.shedding.feasible import FeasibleInputs, LargestInput
from dashboard.figures.shedding import RUNG_LEVELS, feasible_figure, rung_level

NOON = datetime(2026, 11, 26, 12, 0, tzinfo=UTC)


def test_rungs_have_the_levels_of_their_place() -> None:
    assert [rung_level(rung, RUNG_LEVELS) for rung in range(6)] == [0, 1, 2, 3, 4, 5]
    assert [rung_level(rung, 2) for rung in range(3)] == [0, 3, 5]
    assert rung_level(0, 0) == 0
    many = [rung_level(rung, 12) for rung in range(13)]
    assert many == sorted(many)
    assert (many[0], many[1], many[-1]) == (0, 1, 5)


def test_each_rung_has_one_colour() -> None:
    figure = feasible_figure(_inputs(largest=None), 2, 0.5)
    cells = figure["data"][0]
    assert (cells["zmin"], cells["zmax"]) == (-0.5, 2.5)
    colors = [color for _, color in cells["colorscale"]]
    assert colors == ["--rung-0"] * 2 + ["--rung-3"] * 2 + ["--rung-5"] * 2


def test_the_largest_input_of_the_last_day_is_labelled_with_its_time() -> None:
    figure = feasible_figure(_inputs(LargestInput(NOON, 80.0, 60.0, 1.2)), 2, 0.5)
    texts = [note["text"] for note in figure["layout"]["annotations"]]
    assert texts == ["now: factor 0.50", "2026-11-26 12:00: factor 1.20"]
    near = feasible_figure(_inputs(LargestInput(NOON, 51.0, 50.0, 0.51)), 2, 0.5)
    assert len(near["layout"]["annotations"]) == 1


def _inputs(largest: LargestInput | None) -> FeasibleInputs:
    return FeasibleInputs(
        "a", "b", [25.0, 75.0], [25.0, 75.0], [[0, 1], [1, 2]], [(0.0, 100.0), (100.0, 0.0)],
        (50.0, 50.0), [(50.0, 50.0)], 0, largest,
    )  # fmt: skip
