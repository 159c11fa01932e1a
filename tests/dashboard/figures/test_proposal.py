"""The charts of a proposal and of its execution hide no peak and compare like with like."""

from controlplane.planning.plan_summary import MAX_POINTS, worst_places
from dashboard.figures.proposal import StepShown, balance_of_steps, imbalance_by_action


def test_the_chart_begins_at_the_start_and_shows_the_limit() -> None:
    drawn = imbalance_by_action(0.4, [1, 2, 3], [0.3, 0.35, 0.1], 0.2)
    (line,) = drawn["data"]
    assert (line["x"], line["y"]) == ([0, 1, 2, 3], [0.4, 0.3, 0.35, 0.1])
    limit, forbidden = drawn["layout"]["shapes"]
    assert limit["y0"] == forbidden["y0"] == 0.2
    assert forbidden["y1"] >= 0.4


def test_the_finding_names_a_peak_above_the_start() -> None:
    peak = imbalance_by_action(0.2, [1, 2], [0.5, 0.1])["layout"]["meta"]["finding"]
    safe = imbalance_by_action(0.2, [1, 2], [0.15, 0.1])["layout"]["meta"]["finding"]
    assert "50 %" in peak
    assert "50 %" not in safe


def test_many_values_keep_their_peaks_and_their_ends() -> None:
    path = [0.2] * 50_000
    path[33_333] = 0.9
    places = worst_places(path, MAX_POINTS)
    assert len(places) <= MAX_POINTS + 2
    assert (places[0], places[-1]) == (0, len(path) - 1)
    assert 33_333 in places
    assert places == sorted(places)


def test_each_step_is_compared_with_the_plan_at_its_place() -> None:
    path = [0.35, 0.3, 0.2, 0.1]
    steps = [
        StepShown(1, 1, back=False, before=0.41, after=0.36),
        StepShown(2, 4, back=False, before=0.36, after=0.12),
        StepShown(3, 1, back=True, before=0.12, after=0.34),
    ]
    drawn = balance_of_steps(0.4, path, steps)
    predicted, measured = drawn["data"]
    assert predicted["x"] == measured["x"] == [0, 1, 2, 3]
    assert predicted["y"] == [0.4, 0.35, 0.1, 0.35]
    assert measured["y"] == [0.41, 0.36, 0.12, 0.34]
    assert drawn["layout"]["shapes"][0]["x0"] == 2.5


def test_before_the_first_step_nothing_is_measured() -> None:
    measured = balance_of_steps(0.4, [0.1], [])["data"][1]
    assert measured["y"] == [None]


def test_a_proposal_without_actions_has_a_chart() -> None:
    assert imbalance_by_action(0.0, [], [])["data"][0]["y"] == [0.0]


def test_ticks_are_whole_actions_and_few() -> None:
    """Nobody applies half an action."""
    for actions, tick in ((1, 1), (10, 1), (11, 2), (21, 5), (51, 10), (50_000, 5_000)):
        drawn = imbalance_by_action(0.4, [actions], [0.1])
        assert drawn["layout"]["xaxis"]["dtick"] == tick
