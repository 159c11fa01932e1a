"""The logic of the JavaScript modules, in the browser that runs it."""

import json
from typing import Any

import pytest
from django.contrib.staticfiles.storage import staticfiles_storage
from playwright.sync_api import Page

from tests.support.series import grid_of_samples

pytestmark = pytest.mark.browser


def imported(names: str, module: str) -> str:
    """Return the statement that imports names of a module, whose file has a hash in its name."""
    return f"const {{ {names} }} = await import('{staticfiles_storage.url(f'js/{module}.js')}');"


WINDOW = imported("SampleWindow, withGaps", "samples")
LIVE = imported("LiveSocket, delayBefore", "live")


def run(page: Page, script: str) -> Any:
    """Return what an async function body returns."""
    return page.evaluate(f"async () => {{ {script} }}")


def test_samples_out_of_order_and_doubled_are_kept_once_in_order(module: Page) -> None:
    """After a reconnect the gap's samples may come behind live ones."""
    script = (
        "const w = new SampleWindow(60000); w.add([{t: 3000}, {t: 1000}]);"
        "w.add([{t: 2000}, {t: 3000}]); return w.samples.map((s) => s.t);"
    )
    assert run(module, WINDOW + script) == [1000, 2000, 3000]


def test_the_window_is_bounded(module: Page) -> None:
    """A page that is open for days must not grow."""
    script = (
        "const w = new SampleWindow(10000);"
        "for (let t = 0; t < 1e6; t += 1000) w.add([{t}]); return w.samples.length;"
    )
    assert run(module, WINDOW + script) == 11


def test_a_live_sample_joins_its_bucket(module: Page) -> None:
    """A range of hours shows one point per ten seconds, live as stored."""
    script = (
        "const w = new SampleWindow(3600e3, 10); w.load([{t: 10000, in: 5}]);"
        "w.add([{t: 12000, in: 99}, {t: 20000, in: 10, p99: 5, loads: [1]},"
        " {t: 21000, in: 20, p99: 9, loads: [3]}]); w.add([{t: 21000, in: 20}]);"
        "return w.samples;"
    )
    assert run(module, WINDOW + script) == [
        {"t": 10000, "in": 5},
        {"t": 20000, "in": 15, "p99": 7, "loads": [2], "span_s": 2},
    ]


def test_live_samples_merge_as_stored_ones(module: Page) -> None:
    """Weighted by time; ratios by their denominators; the imbalance is that of mean loads."""
    samples = [
        {
            "t": 20_000 + 1000 * second, "span_s": span, "in": read, "read": read, "rf": rf,
            "arrived": 0.9 * read, "loads": [load, 40.0, 10.0], "capacity": [100.0, 50.0, None],
            "imbalance": 0.5, "p95": 100.0 * second, "ladder_position": float(second % 2),
        }
        for second, (span, read, rf, load) in enumerate(
            [(1.0, 100.0, 2.0, 90.0), (2.5, 300.0, 1.2, 10.0), (0.5, 50.0, 3.0, 200.0)]
        )
    ]  # fmt: skip
    script = f"const w = new SampleWindow(3600e3, 10, NAMES); w.add({json.dumps(samples)});"
    names = ["in", "rf", "imbalance", "p95", "ladder_position"]
    script = f"const NAMES = {json.dumps(names)}; {script} return w.samples[0];"
    found = run(module, WINDOW + script)
    stored = grid_of_samples(names, samples).window()
    assert {name: found[name] for name in names} == {
        name: pytest.approx(float(stored[name][0])) for name in names
    }


def test_the_mean_of_a_minute_continues_as_stored_samples_have_it(module: Page) -> None:
    """From a stored minute on; samples of a gap come later, and one twice."""
    samples = [
        {
            "t": 20_000 + 1000 * second, "span_s": 1.0 + second % 3, "in": 90.0 + second,
            "read": 100.0 + second, "rf": 1.0 + second % 7, "arrived": 100.0, "other": [1] * 9,
            "loads": [50.0 + second, 40.0], "capacity": [100.0, 50.0], "p95": 100.0 * second,
        }
        for second in range(90)
    ]  # fmt: skip
    names = ["rf", "imbalance", "p95"]
    script = (
        imported("LastMinute", "samples")
        + f"const samples = {json.dumps(samples)}, names = {json.dumps(names)};"
        "const shown = names.map((name) => `minute_${name}`);"
        "const minute = new LastMinute(samples.slice(0, 60), shown);"
        "for (const place of [60, 63, 61, 62, 62]) minute.add(samples[place]);"
        "return samples.slice(64).map((sample) => minute.add(sample));"
    )
    found = run(module, script)
    means = grid_of_samples(names, samples).trailing(60)
    for name in names:
        expected = means[name][64:].tolist()
        assert [row[f"minute_{name}"] for row in found] == pytest.approx(expected)


def test_a_window_keeps_the_figures_of_its_lines(module: Page) -> None:
    """Figures of nodes are most of a sample: an hour of them would be megabytes."""
    script = (
        "const w = new SampleWindow(60000, 1, ['t', 'in', 'p99']);"
        "w.add([{t: 1000, in: 5, loads: [1, 2]}]); return [w.samples, w.newest];"
    )
    newest = {"t": 1000, "in": 5, "loads": [1, 2]}
    assert run(module, WINDOW + script) == [[{"t": 1000, "in": 5}], newest]


def test_a_gap_breaks_the_line(module: Page) -> None:
    script = "return withGaps([{t: 0}, {t: 1000}, {t: 2000}, {t: 60000}]).length;"
    assert run(module, WINDOW + script) == 6


def test_the_wait_doubles_up_to_half_a_minute_and_is_spread(module: Page) -> None:
    """Jitter: a thousand browsers do not come back at one moment."""
    script = "return [0, 1, 2, 20].map((n) => [delayBefore(n, () => 0), delayBefore(n, () => 1)]);"
    assert run(module, LIVE + script) == [[250, 500], [500, 1000], [1000, 2000], [15000, 30000]]


def test_a_socket_that_comes_back_asks_from_its_newest_sample(module: Page) -> None:
    script = (
        "const sent = [], made = [];"
        "const make = () => { const s = {send: (m) => sent.push(JSON.parse(m)), close() {}};"
        " made.push(s); return s; };"
        "const live = new LiveSocket('x', () => 4200, make); live.open(); made[0].onopen();"
        "made[0].onclose({code: 1006}); live.hurry(); made[1].onopen();"
        "return [made.length, sent];"
    )
    assert run(module, LIVE + script) == [2, [{"since": 4200}, {"since": 4200}]]


def test_ages_are_of_the_clock_of_the_server(module: Page) -> None:
    """The first message of a socket has the server's time; the browser's clock may differ."""
    script = (
        "let socket; const live = new LiveSocket('x', () => 1, () => (socket = {send() {}}));"
        "live.open(); const server = Date.now() - 3600e3;"
        "socket.onmessage({data: JSON.stringify({type: 'samples', samples: [], now: server})});"
        "const late = serverNow() - server; return late >= 0 && late < 1800e3;"
    )
    assert run(module, LIVE + imported("serverNow", "clock") + script)


def test_tokens_become_the_colours_of_the_theme(module: Page) -> None:
    script = (
        imported("themed", "theme")
        + "return themed({a: '--x', b: [[0, '--y'], [1, 2]], c: [1, 2], d: null}, (t) => t + '!');"
    )
    assert run(module, script) == {"a": "--x!", "b": [[0, "--y!"], [1, 2]], "c": [1, 2], "d": None}


@pytest.mark.parametrize("value", [None, 0, 0.417, 7.5, 81.26, 1234.4, 9999.0, 12_345, 2.5e8])
def test_numbers_are_written_as_the_server_writes_them(module: Page, value: float | None) -> None:
    """A live number must not jump to another spelling."""
    from controlplane import numbers  # noqa: PLC0415

    script = imported("format", "format")
    written = module.evaluate(
        f"async (v) => {{ {script} return [format.compact(v), format.percent(v),"
        " format.ratio(v), format.milliseconds(v)]; }",
        value,
    )
    assert written == [
        numbers.compact(value), numbers.percent(value), numbers.ratio(value),
        numbers.milliseconds(value),
    ]  # fmt: skip


FILTER = imported("completions, applied", "filter-completion")
FIELDS = (
    "const fields = [{name: 'state', title: 'state', operators: [':', '='], unit: '',"
    " values: ['live', 'running', 'ended']}, {name: 'rate', title: 'rate', operators: ['>', '<'],"
    " unit: 'records/s', values: []}, {name: 'at', title: 'time', operators: ['>'], unit: '',"
    " values: [], is_time: true}];"
    "const texts = (text, caret = text.length) =>"
    " completions(fields, text, caret).map((item) => item.text);"
)


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("", ["state:", "rate>", "at>"]),
        ("-ra", ["-rate>"]),
        ("rate>10 st", ["state:"]),
        ("state:", ["state:live", "state:running", "state:ended"]),
        ("state:live,r", ["state:live,running"]),
        ("state:running", []),
        ("at>2", ["at>24h"]),
        ("rate>1", []),
        ("lost:", []),
        ('"two st', []),
    ],
)
def test_a_filter_is_completed_from_its_fields(module: Page, text: str, offered: list[str]) -> None:
    assert run(module, f"{FILTER}{FIELDS} return texts({text!r});") == offered


def test_a_completion_replaces_the_term_before_the_caret(module: Page) -> None:
    script = (
        "const text = 'state:r rate>1'; const [item] = completions(fields, text, 7);"
        "return applied(text, item);"
    )
    assert run(module, FILTER + FIELDS + script) == {"text": "state:running rate>1", "caret": 13}


LIMITS = imported("placeLabels, withPlacedLimits", "limit-labels")
# A plot of 400 x 200 px, x from 0 to 100, y from 0 to 10.
FRAME = "const frame = { x: [0, 100], y: [0, 10], width: 400, height: 200 };"


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("{ x: [], y: [] }", ["left", "bottom", None]),
        ("{ x: [0, 30], y: [5.5, 5.5] }", ["right", "bottom", None]),
        ("{ x: [0, 100], y: [5.5, 5.5] }", ["left", "top", None]),
        ("{ x: [0, 100, 0], y: [5.5, 5.5, 4.5] }", ["right", "top", None]),
    ],
)
def test_the_name_of_a_limit_covers_no_data(module: Page, line: str, place: list[str]) -> None:
    """The second point of a line may be far from the first: the segment between them counts."""
    script = (
        f"{FRAME} const [note] = placeLabels([{{ text: 'limit 5 s', y: 5 }}], [{line}], frame);"
        "return [note.xanchor, note.yanchor, note.bgcolor ?? null];"
    )
    assert run(module, LIMITS + script) == place


def test_a_name_without_a_free_place_has_a_background(module: Page) -> None:
    line = "{ x: [0, 100, 0, 100], y: [5.4, 5.4, 4.6, 4.6] }"
    script = (
        f"{FRAME} const [note] = placeLabels([{{ text: 'limit 5 s', y: 5 }}], [{line}], frame);"
        "return note.bgcolor;"
    )
    assert run(module, LIMITS + script) == "--surface"


def test_names_of_near_limits_do_not_cover_each_other(module: Page) -> None:
    labels = "[{ text: 'limit 5 s', y: 5 }, { text: 'lower bound 5 s', y: 5.2 }]"
    script = (
        f"{FRAME} const notes = placeLabels({labels}, [], frame);"
        "return notes.map(({ xanchor, yanchor }) => `${xanchor} ${yanchor}`);"
    )
    places = run(module, LIMITS + script)
    assert len(set(places)) == 2


def test_only_the_names_of_limits_move(module: Page) -> None:
    script = (
        "const element = { clientWidth: 400, clientHeight: 200 };"
        "const layout = { margin: { l: 0, r: 0, t: 0, b: 0 }, xaxis: {}, yaxis: { range: [0, 10] },"
        " annotations: [{ name: 'limit', text: 'limit 5 s', y: 5, x: 0 }, { text: 'now', x: 3 }] };"
        "const data = [{ x: [0, 10, 100], y: [5.5, 5.5, 0] }];"
        "const { annotations } = withPlacedLimits({ data, layout }, element);"
        "return annotations.map(({ text, x }) => [text, x]);"
    )
    assert run(module, LIMITS + script) == [["now", 3], ["limit 5 s", 1]]
