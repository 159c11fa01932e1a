"""Bars, cells, tiles and status of the key microscope, from a report."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from controlplane.planners.partitioning.key_report import TaskLoad
from dashboard.queries.key_groupings import grouping_charts, parameters_text
from dashboard.queries.key_rows import (
    ShareCell,
    columns_of,
    key_bars,
    place_rows,
    status_of,
    trend_of,
)
from tests.support.key_reports import CAPACITIES, TOTAL, key_report, tasks_of

pytestmark = pytest.mark.nightly("pages")

LIMIT = 0.2
REPORT = key_report()
COLUMNS = columns_of(REPORT.tasks)


def percent(text: str) -> float:
    return float(text.removesuffix("%"))


def test_tasks_are_shown_as_nodes_where_each_has_its_own() -> None:
    assert (COLUMNS.unit, COLUMNS.tasks[3].title, COLUMNS.tasks[3].note) == ("node", "node 3", "")
    shared = [TaskLoad(task, task // 2, f"node {task // 2}", 500.0, 10.0) for task in range(4)]
    columns = columns_of(shared)
    assert (columns.unit, columns.tasks[3].title, columns.tasks[3].note) == (
        "task", "task 3", "node 1",
    )  # fmt: skip


def test_the_fullest_task_is_by_share_of_its_capacity() -> None:
    assert COLUMNS.fullest.title == "node 3"
    assert COLUMNS.mean == pytest.approx(TOTAL / sum(CAPACITIES))
    assert COLUMNS.largest == 1500.0


def test_bars_are_proportional_and_sum_up() -> None:
    bars = key_bars(REPORT, COLUMNS)
    first, second = bars.bars[:2]
    assert percent(first.linear) / percent(second.linear) == pytest.approx(31 / 11.4, rel=0.01)
    assert percent(first.log) - percent(second.log) < percent(first.linear) - percent(second.linear)
    assert bars.bars[-1].running == pytest.approx(sum(key.share for key in REPORT.keys))
    assert 0 < percent(bars.limit.linear) <= 100
    assert 0 < percent(bars.limit.log) <= 100
    assert [tick.rate for tick in bars.ticks if tick.linear] == [0, 500, 1000, 1500]
    assert [tick.rate for tick in bars.ticks if tick.log] == [10, 100, 1000]


def test_a_capacity_far_above_all_keys_is_on_the_logarithmic_scale_only() -> None:
    tasks = [replace(task, capacity=100 * task.capacity) for task in REPORT.tasks]
    bars = key_bars(REPORT, columns_of(tasks))
    assert bars.limit.linear == ""
    assert percent(bars.limit.log) < 100
    assert percent(bars.bars[0].linear) > 90


def test_a_key_overloads_a_task_by_its_part_there() -> None:
    """Half of the first key, 558 records/s, is at one task."""
    tasks = [replace(task, capacity=550.0) for task in REPORT.tasks]
    bars = key_bars(REPORT, columns_of(tasks))
    assert [bar.overloads for bar in bars.bars[:3]] == [True, False, False]
    assert not key_bars(REPORT, COLUMNS).bars[0].overloads


def test_bars_without_records() -> None:
    still = replace(REPORT, keys=[replace(key, records_per_s=0.0) for key in REPORT.keys])
    assert {bar.linear for bar in key_bars(still, COLUMNS).bars} == {"0.00%"}
    assert key_bars(replace(REPORT, keys=[]), COLUMNS).bars == []


def test_rows_of_places_end_with_all_other_keys() -> None:
    rows = place_rows(REPORT, COLUMNS)
    assert [cell.share for cell in rows[0].cells] == [None] * 3 + [0.52] + [None] * 2 + [0.48, None]
    assert rows[0].tasks == 2
    assert rows[-1].others == 1840 - 10
    assert sum(cell.share or 0 for cell in rows[-1].cells) == pytest.approx(1)
    assert len(place_rows(replace(REPORT, distinct=10), COLUMNS)) == 10


def test_the_tasks_of_other_keys_are_unknown_if_keys_exceed_the_load_of_a_task() -> None:
    assert place_rows(REPORT, COLUMNS)[-1].known
    few = columns_of(tasks_of([0.5 * task.rate for task in COLUMNS.tasks]))
    assert not place_rows(REPORT, few)[-1].known


@pytest.mark.parametrize(
    ("share", "level", "text"),
    [(None, 0, ""), (0.001, 1, "<1"), (0.2, 1, "20"), (0.5, 3, "50"), (1.0, 5, "100")],
)
def test_cells(share: float | None, level: int, text: str) -> None:
    assert (ShareCell(share).level, ShareCell(share).text) == (level, text)


@pytest.mark.parametrize(
    ("limit", "grade"), [(0.5, "good"), (0.2, "warn"), (0.16, "bad"), (0.0, "unknown")]
)
def test_the_status_is_graded_by_the_policy(limit: float, grade: str) -> None:
    assert status_of(REPORT, COLUMNS, limit).grade == grade


@pytest.mark.parametrize(
    ("capacity", "exceeds", "overloads", "grade"),
    [(1200.0, False, False, "good"), (1100.0, True, False, "good"), (550.0, True, True, "warn")],
)
def test_a_key_that_overloads_a_task_is_a_warning(
    capacity: float, *, exceeds: bool, overloads: bool, grade: str
) -> None:
    columns = columns_of([replace(task, capacity=capacity) for task in REPORT.tasks])
    status = status_of(replace(REPORT, imbalance=0.0), columns, LIMIT)
    assert (status.exceeds, status.overloads, status.grade) == (exceeds, overloads, grade)


def test_the_status_names_the_better_grouping_with_its_memory() -> None:
    status = status_of(REPORT, COLUMNS, LIMIT)
    assert status.better is not None
    assert status.better.name == "head_aware"
    assert status.saved == pytest.approx(1 - 1891 / 3404)
    assert status.ratio == pytest.approx(0.56 / COLUMNS.mean)
    used = [replace(item, in_use=item.recommended) for item in REPORT.groupings]
    assert status_of(replace(REPORT, groupings=used), COLUMNS, LIMIT).better is None


def test_even_loads_have_no_fullest_task() -> None:
    even = columns_of(tasks_of([0.4 * capacity for capacity in CAPACITIES]))
    assert status_of(REPORT, even, LIMIT).is_even
    assert not status_of(REPORT, COLUMNS, LIMIT).is_even


def test_a_query_without_records_has_no_grade() -> None:
    report = replace(REPORT, records_per_s=0.0, tasks=tasks_of((0.0,) * 8), keys=[])
    status = status_of(report, columns_of(report.tasks), LIMIT)
    assert (status.grade, status.ratio, status.largest) == ("unknown", 1.0, None)


def test_trends_are_against_the_point_an_hour_before() -> None:
    trend = trend_of(REPORT.history)
    before = REPORT.history[-61]
    assert trend.top_share == pytest.approx(REPORT.history[-1].top_share - before.top_share)
    assert trend_of(REPORT.history[-30:]).top_share is None
    assert trend_of(()).imbalance is None


def test_bars_of_groupings_are_as_wide_as_the_capacity() -> None:
    charts = grouping_charts(REPORT, COLUMNS, LIMIT)
    bars = charts.cards[0].bars
    assert percent(bars[6].width) / percent(bars[0].width) == pytest.approx(1.5, abs=0.01)
    assert percent(bars[-1].x) + percent(bars[-1].width) == pytest.approx(100, abs=0.1)
    assert [bar.exceeds for bar in bars] == [False] * 3 + [True] + [False] * 4
    assert [card.grade for card in charts.cards] == ["bad", "warn", "good", "good", "good"]
    assert charts.limit == pytest.approx(COLUMNS.mean + LIMIT)
    heights = [percent(bar.y) + percent(bar.height) for card in charts.cards for bar in card.bars]
    assert heights == pytest.approx([86.0] * 40, abs=0.02)


def test_a_limit_far_above_all_loads_is_not_drawn() -> None:
    small = replace(REPORT, records_per_s=0.02 * TOTAL)
    columns = columns_of(tasks_of([0.02 * task.records_per_s for task in REPORT.tasks]))
    charts = grouping_charts(small, columns, LIMIT)
    assert charts.limit_y == ""
    assert charts.top < 0.05


def test_parameters_are_written_for_people() -> None:
    replay = replace(
        REPORT.groupings[0], name="random_choices",
        parameters={"weighted": True, "eps": 0.1, "top_keys": 8},
    )  # fmt: skip
    assert parameters_text(replay) == "use the capacities, uneven load allowed 0.1, top keys 8"


def test_replays_of_another_number_of_tasks_are_left_out() -> None:
    fewer = columns_of(REPORT.tasks[:4])
    assert grouping_charts(REPORT, fewer, LIMIT).cards == []


def test_many_tasks_have_fewer_labels() -> None:
    tasks = [TaskLoad(task, task, f"node {task}", 100.0, 1.0) for task in range(64)]
    replay = replace(REPORT.groupings[0], loads=[1 / 64] * 64)
    charts = grouping_charts(
        replace(REPORT, groupings=[replay], tasks=tasks), columns_of(tasks), LIMIT
    )
    assert sum(bool(bar.label) for bar in charts.cards[0].bars) == 16


def test_a_report_without_loads_has_charts() -> None:
    still = replace(REPORT, records_per_s=0.0, tasks=tasks_of((0.0,) * 8))
    charts = grouping_charts(still, columns_of(still.tasks), LIMIT)
    assert charts.top > 0
    assert datetime.now(UTC) - key_report().history[-1].time < timedelta(minutes=1)
