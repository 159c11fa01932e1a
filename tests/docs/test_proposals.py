"""The page of the states and verbs says what the table says."""

import re

from controlplane.plans.proposal_states import SAID, VERBS
from docs.proposal_tables import MARK, PAGE, tables

TEXT = PAGE.read_text(encoding="utf-8")


def test_the_tables_are_those_of_the_states() -> None:
    """`python -m docs.proposal_tables` writes them anew."""
    assert TEXT[TEXT.index(MARK) + len(MARK) :] == tables()


def test_the_diagram_has_every_arrow_once() -> None:
    arrows = re.findall(r"^    (\w+ --> \w+: .+)$", TEXT, re.MULTILINE)
    assert len(arrows) == len(set(arrows)) == sum(len(verb.sources) for verb in VERBS)


def test_the_example_of_a_path_is_one() -> None:
    assert "roll-back" in {verb.path for verb in SAID}
    assert "`roll-back` with" in TEXT
