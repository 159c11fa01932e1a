"""The board of live charts: how often it draws, when it does not, and what it keeps."""

from typing import Any

import pytest
from playwright.sync_api import Page

from tests.dashboard.browser.test_modules import imported, run

pytestmark = pytest.mark.browser

# A board of one chart on 30 minutes of samples, one per second, with a Plotly that counts.
BOARD = (
    imported("ChartBoard", "charts")
    + """
const element = document.createElement("div");
element.dataset.figure = "rates";
element.style.height = "200px";
document.body.prepend(element);
const draws = [];
const plotly = { react: async (drawn, data) => { draws.push(data[0].x.length); } };
const board = new ChartBoard(new Map([["rates", element]]), plotly);
const layout = { xaxis: {}, yaxis: {}, shapes: [], meta: { levels: [] } };
const trace = { type: "scatter", x: [], y: [], meta: { field: "in" } };
let t = 1_800_000_000_000;
const t0 = t - 1800e3;
const columns = { t: [], in: [] };
for (let moment = t0; moment < t; moment += 1000) { columns.t.push(moment); columns.in.push(5); }
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const until = async (holds) => { while (!holds()) await wait(10); };
const add = (count) => {
  for (let i = 0; i < count; i += 1) {
    t += 1000;
    board.add([{ t, in: i % 7, version: t }]);
  }
};
const figures = { rates: { data: [trace], layout } };
board.load({ figures, columns, start: t0, end: t, live: true, resolution: 1 });
await until(() => draws.length > 0);
"""
)
HIDE = """
let hidden = true;
Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
document.dispatchEvent(new Event("visibilitychange"));
"""
SHOW = "hidden = false; document.dispatchEvent(new Event('visibilitychange'));"


def result(page: Page, script: str) -> Any:
    """Return what a script with a board returns."""
    return run(page, BOARD + script)


def test_many_samples_are_drawn_together(module: Page) -> None:
    """The first are drawn when a second has passed since the last drawing, the others after it."""
    script = (
        "const before = draws.length; add(20); add(20); await until(() => draws.length > before);"
        "await wait(300); return draws.length - before;"
    )
    assert result(module, script) == 1


def test_a_hidden_page_draws_nothing_and_catches_up(module: Page) -> None:
    """Its samples are kept, and drawn once it is visible."""
    script = (
        "const before = draws.length; add(30); await wait(1300); const drawn = draws.length;"
        f"{SHOW} await until(() => draws.length > drawn);"
        "return [drawn - before, draws.length - drawn, board.window.newest.t === t];"
    )
    assert result(module, HIDE + script) == [0, 1, True]


def test_an_hour_of_samples_keeps_what_half_an_hour_needs(module: Page) -> None:
    """The window, the marks and the descriptions of versions have bounds."""
    script = """
add(3600);
for (let version = 1; version < 1000; version += 1) board.describe(version, "a plan", version);
const before = draws.length;
await until(() => draws.length > before);
const { window: kept, marks, versions } = board;
return { samples: kept.samples.length, buckets: kept.buckets.size, drawn: draws.at(-1),
         marks: marks.size, versions: versions.size, delays: window.weirChartDelays.length };
"""
    kept = result(module, script)
    assert (kept["samples"], kept["buckets"]) == (1801, 1801)
    assert kept["drawn"] <= 1801
    assert kept["marks"] <= 300
    assert kept["versions"] <= 300
    assert kept["delays"] <= 2000


def test_records_that_waited_for_a_start_do_not_set_the_scale(module: Page) -> None:
    """They have a mark, stored or live; the picture has them while there is nothing else."""
    script = """
const seen = [];
plotly.react = async (drawn, data, { yaxis }) => { seen.push([yaxis.range[1], data[1].text]); };
const marks = { x: [], y: [], text: [], customdata: [], error_y: {}, meta: { marks: true } };
const line = { type: "scatter", x: [], y: [], meta: { field: "p95", scale: 0.001 } };
const axes = { xaxis: {}, yaxis: { ticksuffix: " s" }, shapes: [], meta: { levels: [] } };
const first = t - 120e3;
const times = Array.from({ length: 60 }, (_, second) => first + 1000 * second);
const load = async (count) => {
  const before = seen.length;
  const p95 = times.map((moment) => (moment === first ? 90e3 : 1000)).slice(0, count);
  const arrived = times.map((moment) => (moment === first ? null : 5)).slice(0, count);
  const stored = { t: times.slice(0, count), p95, arrived };
  const drawn = { rates: { data: [line, marks], layout: axes } };
  board.load({ figures: drawn, columns: stored, start: first - 600e3, end: t, live: true,
               resolution: 1, waited: [first], outage_ms: 30e3 });
  await until(() => seen.length > before);
};
await load(1);
await load(60);
const before = seen.length;
board.add([{ t, p95: 50e3, arrived: 5, span_s: 60, version: 1 }]);
await until(() => seen.length > before);
return seen;
"""
    alone, stored, live = result(module, script)
    assert alone == [pytest.approx(103.5), []]
    assert stored == [pytest.approx(1.15), ["↑ 90 s"]]
    assert live == [pytest.approx(1.15), ["↑ 90 s", "↑ 50 s"]]


# A line that Plotly drew from three samples, at 0, 1 and 2; an axis has a pixel per unit.
LINE = (
    imported("extendLines, rememberLines", "deltas")
    + """
const chart = document.createElement("div");
chart.innerHTML = '<svg><g class="scatterlayer"><g class="trace">'
  + '<path class="js-line" d="M0,1L1,1L2,1"></path></g></g></svg>';
document.body.append(chart);
const axis = { _length: 100, d2p: (value) => value };
chart._fullLayout = { xaxis: axis, yaxis: axis };
chart.querySelector(".trace").__data__ = [{ trace: { meta: { field: "in" } } }];
const path = chart.querySelector("path");
rememberLines(chart, { t: 2, in: 1 });
const sample = ([t, value]) => ({ t, in: value });
const extended = (pairs) => extendLines(chart, pairs.map(sample), ["in"]);
"""
)


def test_a_line_has_all_samples_while_old_ones_leave_the_window(module: Page) -> None:
    """The window has three samples all the time; the last one drawn has another value by now."""
    script = (
        LINE + "const first = extended([[1, 1], [2, 4], [3, 5]]);"
        "const second = extended([[2, 4], [3, 5], [4, 6]]);"
        "return [first, second, path.getAttribute('d')];"
    )
    assert run(module, script) == [True, True, "M0,1L1,1L2.0,4.0L3.0,5.0L4.0,6.0"]


def test_a_line_is_drawn_again_when_its_last_sample_left_the_window(module: Page) -> None:
    script = LINE + "return [extended([[3, 5], [4, 6]]), extended([]), path.getAttribute('d')];"
    assert run(module, script) == [False, False, "M0,1L1,1L2,1"]


def test_a_line_without_its_newest_values_is_extended_once_they_are_known(module: Page) -> None:
    """The mean of a minute with records that waited is not known; other lines still grow."""
    script = (
        LINE + "rememberLines(chart, { t: 3 });"
        "const extended_lines = (pairs) => extendLines(chart, pairs.map(sample), ['in', 'mean']);"
        "return [extended_lines([[3], [4]]), path.getAttribute('d'),"
        " extended_lines([[3], [4], [5, 6], [6, 7]]), path.getAttribute('d')];"
    )
    before = "M0,1L1,1L2,1"
    assert run(module, script) == [True, before, True, f"{before}M5.0,6.0L6.0,7.0"]


def test_the_mean_of_a_minute_begins_after_records_that_waited(module: Page) -> None:
    """Its line stays within the axis, whose scale they do not set."""
    script = (
        imported("SampleWindow", "samples")
        + """
const [window, first] = [new SampleWindow(600e3), 1700000000000];
const times = [0, 30e3, 59e3, 60e3];
window.load(times.map((after) => ({ t: first + after, p95: 1, minute_p95: 2 })), [first]);
return window.samples.map((sample) => [sample.p95, sample.minute_p95 ?? null]);
"""
    )
    assert run(module, script) == [[1, None], [1, None], [1, None], [1, 2]]
