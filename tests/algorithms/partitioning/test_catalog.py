import json
import subprocess
import sys

import pytest

from algorithms.errors import BadParameters, UnknownGrouping
from algorithms.lab.partitioning.planner import PLANNER
from algorithms.partitioning.catalog import (
    GROUPINGS,
    fields_of,
    grouping_of,
    grouping_text,
    parsed_text,
)
from algorithms.partitioning.grouping import Grouping
from algorithms.partitioning.groupings.key import KeyGrouping
from algorithms.partitioning.groupings.random_choices import RandomChoices

NAMES = [
    "key", "shuffle", "partial_key", "two_choices", "random_choices", "bounded_load",
    "consistent_grouping", "frequency_aware", "head_aware", "panes", "rate_aware",
]  # fmt: skip


def test_the_groupings_and_their_order() -> None:
    assert list(GROUPINGS) == NAMES
    assert [name for name, info in GROUPINGS.items() if info.by_key] == ["key"]
    assert [name for name, info in GROUPINGS.items() if info.needs_times] == ["panes", "rate_aware"]
    for name, info in GROUPINGS.items():
        assert (info.name, info.about[-1]) == (name, ".")
        assert issubclass(info.parameters, Grouping)
        assert info.parameters.name == name


def test_the_planner_has_every_grouping() -> None:
    known = {item.name: item for item in PLANNER.algorithms}
    for name, info in GROUPINGS.items():
        assert known[name].parameters is info.parameters


def test_the_catalog_is_light() -> None:
    code = (
        "import sys, algorithms.partitioning.catalog as c; c.GROUPINGS; c.grouping_text('panes');"
        "c.parsed_text(''); print('numba' in sys.modules, 'numpy' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split()[0] == "False"


@pytest.mark.parametrize("name", NAMES)
def test_texts_name_parameters_that_are_no_defaults(name: str) -> None:
    defaults = {field.name: field.default for field in fields_of(name)}
    text = grouping_text(name, defaults)
    assert text == grouping_text(name) == ("" if name == "key" else f'{{"grouping":"{name}"}}')
    changed = grouping_text(name, {"weighted": not defaults["weighted"]})
    flag = json.dumps(not defaults["weighted"])
    assert changed == f'{{"grouping":"{name}","weighted":{flag}}}'
    assert parsed_text(changed) == (name, {"weighted": not defaults["weighted"]})
    assert type(grouping_of(text)) is GROUPINGS[name].parameters


def test_texts_are_canonical() -> None:
    text = grouping_text("random_choices", {"seed": 3, "eps": 0})
    assert text == '{"eps":0.0,"grouping":"random_choices","seed":3}'
    assert grouping_of(text) == RandomChoices(eps=0.0, seed=3)


def test_the_empty_text_is_plain_key_grouping() -> None:
    assert grouping_of("") == KeyGrouping()


@pytest.mark.parametrize("text", ["{", "[]", '"key"', "{}", '{"grouping": 3}', '{"kind": "key"}'])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(BadParameters):
        parsed_text(text)


def test_unknown_groupings_are_refused_with_the_known_ones() -> None:
    for call in (grouping_text, fields_of, lambda name: grouping_of(f'{{"grouping": "{name}"}}')):
        with pytest.raises(UnknownGrouping) as caught:
            call("best")
        assert (caught.value.name, caught.value.known) == ("best", tuple(NAMES))


@pytest.mark.parametrize("parameters", [{"eps": -0.1}, {"stride": 1}, {"eps": "x"}, {"seed": 1.5}])
def test_bad_parameters_are_refused_by_name(parameters: dict[str, object]) -> None:
    for call in (
        lambda: grouping_text("random_choices", parameters),
        lambda: grouping_of(json.dumps({"grouping": "random_choices"} | parameters)),
    ):
        with pytest.raises(BadParameters) as caught:
            call()
        assert list(caught.value.fields) == list(parameters)
