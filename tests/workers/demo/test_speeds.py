import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.demo.recording import NO_SPEED, derive_speeds

Report = tuple[int, int, int, int]


def speeds(*reports: Report) -> list[int]:
    """Return the speeds at (car, ms, tile x, tile y) reports."""
    columns = np.array(reports, np.int64).reshape(-1, 4).T
    return [int(speed) for speed in derive_speeds(*columns)]


def test_speed_is_way_over_time() -> None:
    """Three tiles east and four north are 500 m; in 50 s that is 10 m/s."""
    assert speeds((1, 0, 0, 0), (1, 50_000, 3, 4)) == [NO_SPEED, 1_000]


def test_a_car_that_stands_has_speed_zero() -> None:
    assert speeds((1, 0, 5, 5), (1, 60_000, 5, 5)) == [NO_SPEED, 0]


def test_cars_do_not_borrow_each_others_reports() -> None:
    assert speeds((1, 0, 0, 0), (2, 10, 9, 9), (1, 10_000, 1, 0)) == [NO_SPEED, NO_SPEED, 1_000]


@pytest.mark.parametrize(
    ("ms", "tile", "speed"),
    [
        (0, 1, NO_SPEED),
        (300_000, 3, 100),
        (300_001, 3, NO_SPEED),
        (100_000, 60, 6_000),
        (100_000, 61, NO_SPEED),
    ],
)
def test_what_cannot_be_known_is_not_guessed(ms: int, tile: int, speed: int) -> None:
    """One instant, more than five minutes, more than 60 m/s."""
    assert speeds((1, 0, 0, 0), (1, ms, tile, 0)) == [NO_SPEED, speed]


def test_no_reports_have_no_speeds() -> None:
    assert speeds() == []


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 400_000), *[st.integers(0, 99)] * 2)))
def test_speeds_are_those_found_car_by_car(reports: list[Report]) -> None:
    """Compared with remembering each car's last report, one report at a time."""
    reports.sort(key=lambda report: report[1])
    last: dict[int, Report] = {}
    expected = []
    for report in reports:
        expected.append(_speed(last.get(report[0]), report))
        last[report[0]] = report
    assert speeds(*reports) == expected


def _speed(before: Report | None, now: Report) -> int:
    if before is None or not 0 < now[1] - before[1] <= 300_000:
        return NO_SPEED
    metres = 100 * ((now[2] - before[2]) ** 2 + (now[3] - before[3]) ** 2) ** 0.5
    speed = round(metres * 100_000 / (now[1] - before[1]))
    return speed if speed <= 6_000 else NO_SPEED
