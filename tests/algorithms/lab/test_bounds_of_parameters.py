"""Every parameter of every planner, key grouping and experiment is bounded where it is declared."""

import dataclasses
from typing import Any

import pytest

from algorithms.vocabulary import Parameters, parameter
from tests.algorithms.lab.declarations import declarations


def test_every_number_has_bounds_and_every_text_has_choices() -> None:
    """A new parameter without them fails here, wherever it is declared."""
    fields = [(where, field) for where, kind in declarations() for field in kind.fields()]
    assert {field.type for _, field in fields} == {bool, int, float, str}
    unbounded = [
        (where, field.name)
        for where, field in fields
        if (field.type in (int, float) and None in (field.minimum, field.maximum))
        or (field.type is str and not field.choices)
    ]
    assert unbounded == []


@pytest.mark.parametrize(
    ("kind", "declared"),
    [
        (int, parameter(1, help="No maximum.", minimum=1)),
        (float, parameter(1.0, help="No minimum.", maximum=1.0)),
        ("int | None", parameter(None, help="No bounds.")),
        (str, parameter("", help="Any text.")),
    ],
)
def test_a_declaration_without_bounds_is_a_fault_of_the_program(kind: Any, declared: Any) -> None:
    """Nobody can use such parameters, so no request reaches them."""
    made = dataclasses.make_dataclass(
        "Made", [("it", kind, declared)], bases=(Parameters,), frozen=True
    )
    with pytest.raises(TypeError, match="it: "):
        made()
