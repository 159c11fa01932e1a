"""manage.py lab: runs without database or worker; one line says what is wrong."""

import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from tests.support.signals import HEARING

ROOT = Path(__file__).resolve().parents[3]
SMALL = ["--param", "queries=800", "--param", "servers=4", "--values", "1.5", "3", "--seeds", "2"]


def said(*words: str) -> str:
    written = io.StringIO()
    call_command("lab", *words, stdout=written, stderr=io.StringIO())
    return written.getvalue()


@pytest.mark.parametrize("words", [[], ["list"], ["placement"]])
def test_without_an_experiment_it_lists_them(words: list[str]) -> None:
    lines = said(*words).splitlines()
    assert "placement fig4a        Online, no departures: source popularity" in lines


def test_it_prints_the_summarised_table() -> None:
    lines = said("placement", "fig4a", *SMALL, "--series", "least_cost", "on_rand").splitlines()
    assert lines[0].endswith("Replication factor")
    assert "Least cost" in lines[1]
    assert [line.split()[0] for line in lines[2:]] == ["1.5", "3"]
    assert "±" in lines[2]


def test_it_writes_what_the_suffix_says(tmp_path: Path) -> None:
    for suffix in ("csv", "json", "html"):
        out = tmp_path / f"found.{suffix}"
        said("placement", "fig4a", *SMALL, "--series", "on_rand", "--out", str(out))
    assert len((tmp_path / "found.csv").read_text().splitlines()) == 1 + 2 * 2
    told = json.loads((tmp_path / "found.json").read_text())
    assert told["parameters"]["queries"] == 800
    assert "exponent" not in told["parameters"]
    assert "Plotly.newPlot" in (tmp_path / "found.html").read_text()


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["nothing"], "no experiments of 'nothing'; planners: placement"),
        (["placement", "fig9"], "no experiment 'fig9'; known: fig3a"),
        (["placement", "fig4a", "--param", "depth=3"], "has no depth; it has seeds, servers"),
        (["placement", "fig4a", "--param", "nu"], "write name=value"),
        (["placement", "fig4a", "--param", "nu=x"], "nu: must be a number, not 'x'"),
        (["placement", "fig4a", "--param", "nu=-1"], "nu: must be at least 0"),
        (["placement", "fig4a", "--param", "exponent=2"], "is swept; write --values 2"),
        (["placement", "fig4a", "--values", "x"], "values: Must be numbers"),
        (["placement", "fig4a", "--values", "-1"], "values: must be at least 0"),
        (["placement", "fig4a", "--series", "magic"], "series: magic: not among"),
        (["placement", "fig4a", "--seeds", "0"], "seeds: must be at least 1"),
        (["placement", "fig4a", "--out", "x.png"], "must end in .csv, .json, .svg, .html"),
        (["placement", "fig4a", "--out", "nowhere/x.csv"], "there is no folder nowhere"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(words: list[str], fault: str) -> None:
    """Before any work is done."""
    with pytest.raises(CommandError) as refused:
        said(*words)
    assert fault in str(refused.value)
    assert "\n" not in str(refused.value)


def test_ctrl_c_ends_it_as_shells_expect(tmp_path: Path) -> None:
    """Exit code 130 and no traceback; a script around it notices."""
    command = [
        *HEARING,
        sys.executable,
        str(ROOT / "manage.py"),
        "lab",
        "placement",
        "fig4a",
        "--seeds",
        "9",
    ]
    environment = {**os.environ, "WEIR_DATA": str(tmp_path)}
    screen, terminal = pty.openpty()
    try:
        with subprocess.Popen(
            command,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=terminal,
        ) as started:
            # From its first progress on, nothing is imported any more.
            while not re.search(rb"[1-9]\d?%", told := os.read(screen, 4096)):
                assert started.poll() is None, told
            started.send_signal(signal.SIGINT)
            assert started.wait(timeout=30) == 130
        told = os.read(screen, 65536)
        assert b"interrupted" in told
        assert b"Traceback" not in told
    finally:
        os.close(screen)
        os.close(terminal)
