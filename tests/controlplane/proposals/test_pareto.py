"""The Pareto set is that of the definition, ties and all."""

from hypothesis import given
from hypothesis import strategies as st

from controlplane.proposals.comparison_table import pareto

# Few values, so that figures are often equal.
figure = st.sampled_from([0.0, 1.0, 2.0, 3.5])
points = st.lists(st.tuples(figure, figure, figure), max_size=25)


def beaten(point: tuple[float, ...], others: list[tuple[float, ...]]) -> bool:
    """Tell by the definition whether another is nowhere worse and somewhere better."""
    return any(
        all(b <= a for a, b in zip(point, other, strict=True))
        and any(b < a for a, b in zip(point, other, strict=True))
        for other in others
    )


@given(points)
def test_it_is_what_nothing_beats(given_points: list[tuple[float, ...]]) -> None:
    kept = pareto(given_points)
    assert kept == [not beaten(point, given_points) for point in given_points]


def test_of_equals_all_are_kept() -> None:
    assert pareto([(1, 2), (1, 2), (2, 2)]) == [True, True, False]
