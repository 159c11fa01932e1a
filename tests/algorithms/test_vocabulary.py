import math
import pickle
from dataclasses import dataclass
from typing import Any

import pytest

from algorithms.errors import BadParameters, BadProblem, Infeasible, PlanningError
from algorithms.placement.online import LeastCost, LeastSource, OnRand
from algorithms.vocabulary import Parameters, parameter


def test_fields_describe_themselves() -> None:
    """A form needs name, title, type, default, unit, help and range, and nothing else."""
    nu, alpha = LeastSource.fields()
    assert (nu.name, nu.type, nu.default, nu.minimum, nu.maximum) == ("nu", float, 0.05, 0.0, 10.0)
    assert (alpha.name, alpha.unit, alpha.default) == ("alpha", "queries", 10.0)
    assert [(nu.title, nu.letter), (alpha.title, alpha.letter)] == [
        ("Uneven load allowed", "nu"), ("Extra queries allowed", "alpha"),
    ]  # fmt: skip


def test_what_is_left_out_takes_its_default() -> None:
    assert LeastCost.from_mapping({"alpha": 3}) == LeastCost(nu=0.05, alpha=3.0)


@pytest.mark.parametrize("value", [-0.1, math.nan, math.inf, "x", None, True])
def test_values_out_of_range_are_refused_by_field(value: Any) -> None:
    with pytest.raises(BadParameters) as caught:
        LeastCost.from_mapping({"nu": value})
    assert list(caught.value.fields) == ["nu"]


def test_all_faults_are_reported_at_once() -> None:
    with pytest.raises(BadParameters) as caught:
        LeastCost(nu=-1, alpha=-1)
    assert list(caught.value.fields) == ["nu", "alpha"]


def test_whole_numbers_are_not_rounded() -> None:
    with pytest.raises(BadParameters):
        OnRand.from_mapping({"seed": 1.5})


def test_unknown_names_are_refused() -> None:
    with pytest.raises(BadParameters) as caught:
        LeastCost.from_mapping({"beta": 1})
    assert caught.value.fields == {"beta": ["is not a parameter"]}


@pytest.mark.parametrize(
    "error",
    [BadProblem("nu", "bad"), BadParameters({"nu": ["bad"]}), Infeasible(10, [3, 3, 3], 0.0, 0.2)],
)
def test_errors_travel_between_processes_with_their_data(error: PlanningError) -> None:
    """Celery and process pools pickle what is raised."""
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)


@dataclass(frozen=True)
class Mixed(Parameters):
    """One parameter of each kind."""

    flag: bool = parameter(default=True, help="Yes or no.")
    rule: str = parameter("ic", help="One of two.", choices=("ic", "mms"))
    count: int | None = parameter(
        None, unit="queries", help="None is not a limit.", minimum=1, maximum=100
    )
    share: float | None = parameter(None, help="None is all.", minimum=0.0, maximum=1.0)


def test_each_kind_of_parameter_describes_itself() -> None:
    flag, rule, count, share = Mixed.fields()
    assert (flag.type, flag.default, flag.optional) == (bool, True, False)
    assert (rule.type, rule.choices) == (str, ("ic", "mms"))
    assert (count.type, count.optional, count.default, count.unit) == (int, True, None, "queries")
    assert (share.type, share.optional, share.maximum) == (float, True, 1.0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("flag", 1),
        ("flag", "true"),
        ("flag", None),
        ("rule", "best"),
        ("rule", None),
        ("rule", 3),
        ("count", 0),
        ("count", 1.0),
        ("count", True),
        ("share", 1.5),
        ("share", 10**400),
        ("share", "0.5"),
    ],
)
def test_each_kind_refuses_the_others(name: str, value: Any) -> None:
    """A 1 is not a flag and a flag is not a number: a guess would hide a mistake."""
    with pytest.raises(BadParameters) as caught:
        Mixed.from_mapping({name: value})
    assert list(caught.value.fields) == [name]


def test_each_kind_takes_its_own() -> None:
    given = {"flag": False, "rule": "mms", "count": 3, "share": 1}
    assert Mixed.from_mapping(given) == Mixed(flag=False, rule="mms", count=3, share=1.0)
    assert isinstance(Mixed.from_mapping(given).share, float)
    assert Mixed.from_mapping(Mixed().to_mapping()) == Mixed()


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("flag", "yes", True),
        ("flag", " False ", False),
        ("rule", "mms", "mms"),
        ("count", "12", 12),
        ("count", "none", None),
        ("count", "", None),
        ("share", "1e-1", 0.1),
    ],
)
def test_text_stands_for_values(name: str, text: str, value: object) -> None:
    """Forms and command lines have nothing but text."""
    field = next(field for field in Mixed.fields() if field.name == name)
    assert field.parsed(text) == value


@pytest.mark.parametrize(
    ("name", "text"), [("flag", "maybe"), ("flag", ""), ("count", "1.5"), ("share", "much")]
)
def test_text_of_another_kind_is_refused(name: str, text: str) -> None:
    field = next(field for field in Mixed.fields() if field.name == name)
    with pytest.raises(ValueError, match="must be"):
        field.parsed(text)
