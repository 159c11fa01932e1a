"""The charts of a proposal and of its execution hide no peak and compare like with like."""

from dashboard.figures.parts import MAX_POINTS
from dashboard.figures.proposal import (
    StepShown,
    balance_of_steps,
    imbalance_by_action,
    proposal_figures,
    worst_of,
)


def test_the_way_begins_at_the_start_and_shows_its_bound() -> None:
    found = imbalance_by_action(0.4, [0.3, 0.35, 0.1])
    way, now, bound = found["data"]
    assert (way["x"], way["y"]) == ([0, 1, 2, 3], [0.4, 0.3, 0.35, 0.1])
    assert (now["y"], bound["y"]) == ([0.4, 0.4], [0.0, 0.0])


def test_a_long_way_keeps_its_peaks_and_its_ends() -> None:
    path = [0.2] * 50_000
    path[33_333] = 0.9
    places, values = worst_of(path)
    assert len(places) <= MAX_POINTS + 2
    assert (places[0], places[-1]) == (0, len(path) - 1)
    assert (33_333, 0.9) in set(zip(places, values, strict=True))
    assert places == sorted(places)


def test_each_step_is_compared_with_the_plan_at_its_place() -> None:
    path = [0.35, 0.3, 0.2, 0.1]
    steps = [
        StepShown(1, 1, back=False, before=0.41, after=0.36),
        StepShown(2, 4, back=False, before=0.36, after=0.12),
        StepShown(3, 1, back=True, before=0.12, after=0.34),
    ]
    found = balance_of_steps(0.4, path, steps)
    predicted, measured = found["data"]
    assert predicted["x"] == measured["x"] == [0, 1, 2, 3]
    assert predicted["y"] == [0.4, 0.35, 0.1, 0.35]
    assert measured["y"] == [0.41, 0.36, 0.12, 0.34]
    assert found["layout"]["shapes"][0]["x0"] == 2.5


def test_before_the_first_step_nothing_is_measured() -> None:
    measured = balance_of_steps(0.4, [0.1], [])["data"][1]
    assert measured["y"] == [None]


def test_a_proposal_without_moves_has_its_charts() -> None:
    found = proposal_figures(["a"], {"rates": [1.0], "imbalance": 0.0}, {"rates": [1.0]})
    assert set(found) == {"rates", "loads", "imbalance"}
    assert found["imbalance"]["data"][0]["y"] == [0.0]


def test_ticks_are_whole_moves_and_few() -> None:
    """Nobody carries out half a move."""
    for moves, tick in ((1, 1), (10, 1), (11, 2), (21, 5), (51, 10), (50_000, 5_000)):
        assert imbalance_by_action(0.4, [0.1] * moves)["layout"]["xaxis"]["dtick"] == tick
