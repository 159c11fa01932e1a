"""The command as a process: the script, manage.py, signals, and what it does not need."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.descriptions import SMALL

ROOT = Path(__file__).parents[3]
# Nothing listens there: whoever asks a database is told so.
NO_DATABASE = {"DATABASE_URL": "postgres://nobody@127.0.0.1:1/none"}


def ran(*words: str, given: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, input=given, capture_output=True, text=True, timeout=120, check=False, cwd=ROOT,
        env=os.environ | NO_DATABASE | environment,
    )  # fmt: skip


@pytest.mark.parametrize(
    "command",
    [[sys.executable, "-m", "controlplane.cli.main"], [sys.executable, "manage.py", "weir"]],
)
def test_a_plan_needs_no_database(command: list[str], tmp_path: Path) -> None:
    data = {"WEIR_DATA": str(tmp_path), "WEIR_SECRET_KEY": "of a test"}
    done = ran(
        *command, "plan", "placement", "--input", "-", "--algorithm", "mms", given=SMALL, **data
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "pump: placement by mms" in done.stdout
    away = ran(*command, "clusters", "list", **data)
    assert away.returncode == 5
    assert "the database does not answer" in away.stderr


def test_help_needs_neither_settings_nor_planners() -> None:
    """So it answers at once, whatever is wrong with the environment, once its document is kept."""
    assert ran(sys.executable, "-m", "controlplane.cli.main", "--help").returncode == 0
    script = (
        "import sys; from controlplane.cli import main; code = 0\n"
        "try: main.main(['queries', 'list', '--help'])\n"
        "except SystemExit: sys.exit(bool({'django', 'httpx', 'numpy', 'rich'} & set(sys.modules)))"
    )
    assert ran(sys.executable, "-c", script).returncode == 0
    done = ran(sys.executable, "-m", "controlplane.cli.main", "--help", WEIR_DEBUG="odd")
    assert done.returncode == 0
    assert "exit codes:" in done.stdout


def test_a_shell_completes_commands_and_options(tmp_path: Path) -> None:
    """As bash calls it: of what needs a document, once it is kept."""
    assert ran(sys.executable, "-m", "controlplane.cli.main", "--help").returncode == 0
    for line, expected in (("weir clusters sh", ["show "]), ("weir plan --alg", ["--algorithm "])):
        file = tmp_path / "words"
        ran(
            sys.executable, "-m", "controlplane.cli.main", WEIR_DEBUG="odd", _ARGCOMPLETE="1",
            COMP_LINE=line, COMP_POINT=str(len(line)), _ARGCOMPLETE_STDOUT_FILENAME=str(file),
        )  # fmt: skip
        assert file.read_text().split("\v") == expected


def test_a_wrong_environment_is_told() -> None:
    done = ran(sys.executable, "-m", "controlplane.cli.main", "schema", WEIR_DEBUG="odd")
    assert done.returncode == 2
    assert "WEIR_DEBUG" in done.stderr


def test_a_reader_that_goes_away_ends_it_quietly(tmp_path: Path) -> None:
    script = f"{sys.executable} -m controlplane.cli.main schema | head -c 1"
    done = ran("bash", "-c", f"set -o pipefail; {script}", WEIR_DATA=str(tmp_path))
    assert done.stderr == ""
    assert done.returncode in (0, 141)
