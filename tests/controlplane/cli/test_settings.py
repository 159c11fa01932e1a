"""The variables of `weir`, as a process of its own against a real server.

Of each setting an option precedes its variable, and the variable what this machine has.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from pytest_django.live_server_helper import LiveServer

from controlplane.access import tokens
from controlplane.access.roles import Actor
from controlplane.cli.command_parser import COMMON
from controlplane.cli.parser import parsed, parser
from tests.controlplane.api.callers import user_of
from tests.controlplane.cli.test_operations import DOCUMENT
from tests.support.cluster import actor

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.nightly("commands")]
ROOT: Final = Path(__file__).parents[3]
# A port at which nothing listens, and a variable's value with which a call ends at once.
NOWHERE: Final = "http://127.0.0.1:9"


class Weir:
    """The command, in a data directory without a database: what it knows, the server told it."""

    def __init__(self, folder: Path, url: str, token: str) -> None:
        self.folder, self.url, self.token = folder, url, token

    def __call__(self, *words: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        kept = {name: value for name, value in os.environ.items() if not name.startswith("WEIR_")}
        return subprocess.run(
            [sys.executable, "-m", "controlplane.cli.main", *words], cwd=ROOT, check=False,
            env=kept | {"WEIR_DATA": str(self.folder)} | variables, capture_output=True, text=True,
        )  # fmt: skip

    def file(self, name: str, text: str) -> str:
        """Return a file of mode 600."""
        path = self.folder / name
        path.touch(mode=0o600)
        path.write_text(text)
        return str(path)


@pytest.fixture
def weir(operator: Actor, live_server: LiveServer, tmp_path: Path) -> Weir:
    return Weir(tmp_path, live_server.url, tokens.create(user_of(operator), "terminal"))


def test_the_url_and_the_token_come_from_variables(weir: Weir, operator: Actor) -> None:
    there = {"WEIR_URL": weir.url, "WEIR_TOKEN": weir.token}
    done = weir("whoami", "--json", **there)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["name"] == operator.name
    # An option precedes its variable.
    done = weir("whoami", "--url", NOWHERE, **there)
    assert (done.returncode, f"{NOWHERE} does not respond" in done.stderr) == (5, True)
    assert weir("whoami", "--url", weir.url, **there | {"WEIR_URL": NOWHERE}).returncode == 0
    # An empty option is the Weir of this machine, which has no database here.
    assert "database" in weir("whoami", "--url", "", **there).stderr
    assert "database" in weir("whoami").stderr


@pytest.mark.parametrize("words", [("--url", "{}", "whoami"), ("whoami", "--url", "{}"),
                                   ("tokens", "--url", "{}", "list")])  # fmt: skip
def test_options_may_precede_a_command(weir: Weir, words: tuple[str, ...]) -> None:
    done = weir(*(word.format(weir.url) for word in words), WEIR_TOKEN=weir.token)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_file_of_the_token_precedes_the_token(weir: Weir) -> None:
    viewer = actor("viewer", "reader")
    file = weir.file("token", tokens.create(user_of(viewer), "file"))
    there = {"WEIR_URL": weir.url, "WEIR_TOKEN": weir.token}
    done = weir("whoami", "--json", **there, WEIR_TOKEN_FILE=file)
    assert json.loads(done.stdout)["name"] == "reader"
    own = weir.file("own", weir.token)
    done = weir("whoami", "--json", "--token-file", own, **there, WEIR_TOKEN_FILE=file)
    assert json.loads(done.stdout)["name"] != "reader"
    wrong = weir("whoami", **there, WEIR_TOKEN_FILE=weir.file("odd", "\u00ff"))
    assert (wrong.returncode, "no usable token" in wrong.stderr) == (4, True)


@pytest.mark.parametrize(
    ("variables", "code", "why"),
    [
        ({"WEIR_URL": "nonsense"}, 2, "no address of a Weir"),
        ({"WEIR_URL": "http://weir.example.org"}, 2, "without encryption"),
        ({"WEIR_URL": "https://u:secret@127.0.0.1:9"}, 5, "u:***@127.0.0.1:9 does not respond"),
        ({"WEIR_URL": NOWHERE, "WEIR_TIMEOUT_S": "soon"}, 2, "must be a whole number"),
        ({"WEIR_URL": NOWHERE, "WEIR_TIMEOUT_S": "0"}, 2, "must be from 1 to 3600"),
        ({"WEIR_URL": NOWHERE, "WEIR_CA_FILE": "/nowhere"}, 2, "No such file"),
        ({"WEIR_URL": NOWHERE, "WEIR_TOKEN_FILE": "/nowhere"}, 3, "No such file"),
        ({"WEIR_URL": NOWHERE, "WEIR_TOKEN": ""}, 4, "no usable token"),
    ],
)
def test_a_wrong_value_is_refused_with_what_to_do(
    weir: Weir, variables: dict[str, str], code: int, why: str
) -> None:
    done = weir("whoami", **{"WEIR_TOKEN": weir.token} | variables)
    assert (done.returncode, why in done.stderr) == (code, True), done.stderr
    assert "what to do" in done.stderr
    assert "secret" not in done.stderr


def test_every_variable_of_the_help_is_tried_here() -> None:
    named = set(re.findall(r"WEIR_[A-Z_]+", parser(None).format_help()))
    assert named == {"WEIR_USER", "WEIR_URL", "WEIR_TOKEN", "WEIR_TOKEN_FILE", "WEIR_CA_FILE"}
    tried = Path(__file__).read_text(encoding="utf-8")
    assert all(f'"{name}"' in tried or f"{name}=" in tried for name in named)


@pytest.mark.parametrize("option", ["--as", "--url", "--token-file", "--ca-file"])
def test_an_option_has_one_effect_before_and_after_a_command(option: str) -> None:
    def given(*words: str) -> dict[str, Any]:
        return vars(parsed(words, lambda common: DOCUMENT)) | {"operation": None}

    before = given(option, "x", "clusters", "list")
    after = given("clusters", "list", option, "x")
    assert before == after
    assert "x" in {before[name] for name in COMMON}
    # The last one counts.
    assert given(option, "y", "clusters", "list", option, "x") == after


def test_a_command_that_calls_no_weir_takes_none(weir: Weir) -> None:
    done = weir("--url", weir.url, "schema")
    assert (done.returncode, "omit --as, --url" in done.stderr) == (2, True)
    assert weir("schema", WEIR_URL=NOWHERE).returncode == 0
