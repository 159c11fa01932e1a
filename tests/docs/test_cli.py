"""The exit codes of docs/cli.md, and the page of descriptions of clusters."""

import re
from pathlib import Path

from controlplane.cli.codes import ABOUT
from controlplane.cluster_spec.text import parse_description
from docs import description_tables
from docs.description_tables import MARK

PAGE = Path(description_tables.__file__).with_name("cli.md")
TEXT = PAGE.read_text(encoding="utf-8")
DESCRIPTION = description_tables.PAGE.read_text(encoding="utf-8")
CODES = "<!-- codes -->\n"


def blocks() -> list[str]:
    """Return what stands as YAML on the page of descriptions."""
    return re.findall(r"^```yaml\n(.*?)^```", DESCRIPTION, re.MULTILINE | re.DOTALL)


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
