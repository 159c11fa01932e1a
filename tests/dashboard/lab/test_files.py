"""The files that a run can be taken away as."""

import json

from algorithms.lab.experiments import Table
from controlplane.lab.files import csv_of, json_of
from dashboard.lab.files import html_of
from dashboard.lab.summary import plain, summary, summary_lines
from tests.controlplane.lab.small_experiments import Small, small_experiment

SMALL = small_experiment()
TABLE = SMALL.run(Small(seeds=2), [1.0, 2.5])


def test_the_csv_has_every_row() -> None:
    lines = csv_of(TABLE).splitlines()
    assert lines[:2] == ["width,series,seed,area,seconds", "1.0,single,0,2.0,0.5"]
    assert len(lines) == 1 + 2 * 2 * 2


def test_the_json_leads_back_to_the_table() -> None:
    told = json.loads(json_of("placement", "small", {"height": 2}, TABLE))
    assert (told["experiment"], told["parameters"]) == ("small", {"height": 2})
    assert Table.from_json(told) == TABLE


def test_the_html_has_figure_parameters_and_summary() -> None:
    html = html_of(SMALL, {"height": 2}, TABLE)
    assert "What the area is." in html
    assert "height of the area 2 m" in html
    assert "Plotly.newPlot" in html
    assert "2.5 <span" in html


def test_the_summary_has_a_row_per_value_and_a_column_per_series() -> None:
    found = summary(SMALL, SMALL.panels[0].y, TABLE)
    assert found.heads == ("single", "double")
    assert found.rows[0] == ("1", (("2.5", "± 0.71"), ("4.5", "± 0.71")))
    lines = summary_lines(found)
    assert [line.split()[0] for line in lines] == ["Width", "1", "2.5"]
    assert len({len(line) for line in lines}) == 1


def test_a_series_without_a_value_is_shown_as_missing() -> None:
    """A point that could not be measured is not a zero."""
    table = Table(("width", "series", "seed", "area"), ((1.0, "single", 0, None),))
    assert summary(SMALL, SMALL.panels[0].y, table).rows == (("1", (("–", ""),)),)  # noqa: RUF001


def test_values_are_written_as_one_types_them() -> None:
    """No exponent, and nothing rounded."""
    assert [plain(v) for v in (1e6, 1.25, 100.0, 3, "x")] == ["1000000", "1.25", "100", "3", "x"]
