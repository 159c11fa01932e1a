"""The examples of docs/cli.md are run, and print what stands there; so do its exit codes."""

import doctest
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane.cli.codes import ABOUT
from controlplane.cli.main import main
from controlplane.cluster_spec.text import parse_description
from controlplane.models import Proposal
from docs import description_tables
from docs.description_tables import MARK
from tests.support import cluster as made
from tests.support.execution import carried_out, scattered

PAGE = Path(description_tables.__file__).with_name("cli.md")
TEXT = PAGE.read_text(encoding="utf-8")
DESCRIPTION = description_tables.PAGE.read_text(encoding="utf-8")
ORDERS = """\
placed_at,shop,items
2026-10-18T10:00:00Z,Kiel,3
2026-10-18T10:00:05Z,Bremen,
"""
CODES = "<!-- codes -->\n"
QUERIES = """\
queries:
- {name: x, streams: [s0], text: {aggregates: {n: count(*)}}}
- {name: y, streams: [s99], text: {aggregates: {n: count(*)}}}
"""


def examples() -> Iterator[tuple[str, str]]:
    """Yield each command with what it prints."""
    for block in re.findall(r"^```console\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL):
        for one in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, printed = one.partition("\n")
            yield command, printed


def blocks() -> list[str]:
    """Return what stands as YAML on the page of descriptions."""
    return re.findall(r"^```yaml\n(.*?)^```", DESCRIPTION, re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The people and the cluster of the page, and its files."""
    anna = made.actor("admin", "anna")
    scattered(anna, made.small_cluster(anna))
    made.actor("viewer", "vera")
    made.actor("approver", "paul")
    (tmp_path / "queries.yaml").write_text(QUERIES)
    (tmp_path / "orders.csv").write_text(ORDERS)
    (tmp_path / "pump.yaml").write_text(blocks()[0])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WEIR_USER", "anna")
    return tmp_path


def ran(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    if "watch" in command:
        # By now the worker has carried out what was approved.
        carried_out(Proposal.objects.get())
    if "SEAL" in command:
        command = command.replace("SEAL", Proposal.objects.get().seal)
    call, _, file = command.partition(" > ")
    main(shlex.split(call)[1:])
    told = capsys.readouterr()
    if file:
        Path(file).write_text(told.out)
        return ""
    return told.out + told.err


@pytest.mark.django_db(transaction=True, reset_sequences=True)
def test_commands_print_what_the_page_says(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One after the other: each finds what those before it left."""
    assert folder
    found = list(examples())
    assert len(found) >= 15
    for command, expected in found:
        got = ran(command, capsys)
        same = doctest.OutputChecker().check_output(
            expected, got, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        )
        assert same, f"$ {command}\n{got}"


def test_the_exit_codes_are_those_of_the_command() -> None:
    rows = "\n".join(f"| {code.value} | {about} |" for code, about in ABOUT.items())
    assert TEXT[TEXT.index(CODES) + len(CODES) :] == f"| code | meaning |\n|---|---|\n{rows}\n"


def test_the_description_of_the_page_is_one_with_and_without_its_rules() -> None:
    cluster, rules = blocks()
    found = parse_description(cluster + rules)
    assert (len(found.blackouts), len(found.exclusions), len(found.drops)) == (2, 1, 2)
    without: dict[str, list[str]] = {name: [] for name in ("blackouts", "exclusions", "drops")}
    assert found.model_copy(update=without) == parse_description(cluster)


def test_the_schema_and_the_tables_are_those_of_the_models() -> None:
    """`python -m docs.description_tables` writes them anew."""
    assert description_tables.SCHEMA.read_text(encoding="utf-8") == description_tables.schema()
    assert DESCRIPTION[DESCRIPTION.index(MARK) + len(MARK) :] == description_tables.tables()
