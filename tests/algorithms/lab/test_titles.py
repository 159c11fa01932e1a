"""Titles of parameters and measures on pages, in files and in texts of experiments."""

import re
from dataclasses import dataclass, replace

import pytest

from algorithms.lab.experiment import Experiment
from algorithms.lab.experiments import EXPERIMENTS, series_title
from algorithms.lab.registry import algorithms
from algorithms.vocabulary import Parameters, parameter
from tests.algorithms.lab.declarations import declarations

ALL = [item for experiments in EXPERIMENTS.values() for item in experiments]
LETTERS = {"alpha", "beta", "gamma", "delta", "eps", "epsilon", "lambda", "nu", "tau", "theta"}
# Ends of names that are units: the unit of the field has them.
UNITS = {"s", "ms", "bytes", "mb", "percent"}


@dataclass(frozen=True)
class Learning(Parameters):
    """A parameter without a title, and one with title and letter."""

    batch_size: int = parameter(1, help="Rows.", minimum=1, maximum=9)
    eta: float = parameter(
        0.5, title="Learning rate", letter="eta", help="Step.", minimum=0.0, maximum=1.0
    )


def is_plain(title: str) -> bool:
    """Return whether a title is made of words: no identifier, no letter, no unit."""
    words = title.lower().split()
    is_letter = len(words) == 1 and (len(title) == 1 or title.lower() in LETTERS)
    is_sentence = not title[:1].islower() and not title.endswith(".")
    return is_sentence and "_" not in title and not is_letter and words[-1] not in UNITS


def test_every_parameter_has_a_title_of_plain_words() -> None:
    wrong = [
        (where, field.name, field.title)
        for where, kind in declarations()
        for field in kind.fields()
        if not is_plain(field.title)
    ]
    assert wrong == []


def test_every_choice_has_a_title_of_its_own() -> None:
    fields = [field for _, kind in declarations() for field in kind.fields() if field.choices]
    assert {"LeastCost", "Largest least share"} <= {t for f in fields for t in f.choice_titles}
    for field in fields:
        assert len(set(field.choice_titles)) == len(field.choices)
        assert all("_" not in title and not title[0].islower() for title in field.choice_titles)


def test_titles_of_one_declaration_differ() -> None:
    for where, kind in declarations():
        titles = [field.title for field in kind.fields()]
        assert len(titles) == len(set(titles)), where


def test_a_letter_is_one_word() -> None:
    letters = {field.letter for _, kind in declarations() for field in kind.fields()} - {""}
    assert letters >= {"nu", "tau", "k"}
    assert all(letter.isalpha() and (len(letter) == 1 or letter in LETTERS) for letter in letters)


def test_a_title_is_by_default_the_words_of_the_name() -> None:
    plain, named = Learning.fields()
    assert (plain.title, plain.letter) == ("Batch size", "")
    assert (named.title, named.letter) == ("Learning rate", "eta")
    assert replace(plain, name="a.b.batch_size").title == "Batch size"


@pytest.mark.parametrize("item", ALL, ids=lambda item: f"{item.planner}-{item.name}")
def test_the_axis_of_x_has_the_title_of_its_parameter(item: Experiment) -> None:
    title = next(field.title for field in item.parameters.fields() if field.name == item.x.name)
    assert item.x.label.partition(" (")[0] == title


@pytest.mark.parametrize("item", ALL, ids=lambda item: f"{item.planner}-{item.name}")
def test_every_measure_has_a_label_of_its_own(item: Experiment) -> None:
    declared = {axis.name for axis in (*item.axes, *(panel.y for panel in item.panels))}
    assert set(item.measures) <= declared
    labels = [item.axis_of(measure).label for measure in item.measures]
    assert len(labels) == len(set(labels))
    assert all(map(is_plain, labels)), labels


@pytest.mark.parametrize("item", ALL, ids=lambda item: f"{item.planner}-{item.name}")
def test_texts_of_experiments_name_no_identifier(item: Experiment) -> None:
    fields = [field.name for field in item.parameters.fields()]
    names = {name for name in (*fields, *item.measures) if "_" in name}
    texts = (item.title, item.about, *(claim.text for claim in item.claims))
    assert names.isdisjoint(re.findall(r"\w+", " ".join(texts)))


def test_titles_in_the_texts_of_experiments_exist() -> None:
    """A title between quotation marks is that of a parameter, a measure or a series."""
    for item in ALL:
        known = {field.title for field in item.parameters.fields()}
        known |= {item.axis_of(measure).label for measure in item.measures}
        known |= {series_title(item.planner, item.name, name) for name in item.choices}
        assert set(re.findall("“(.*?)”", item.about)) <= known, item.name


@pytest.mark.parametrize("item", ALL, ids=lambda item: f"{item.planner}-{item.name}")
def test_every_series_has_a_declared_title_of_its_own(item: Experiment) -> None:
    declared = {algorithm.name for algorithm in algorithms(item.planner)} | set(item.series_titles)
    assert set(item.choices) <= declared
    titles = [series_title(item.planner, item.name, name) for name in item.choices]
    assert len(titles) == len(set(titles))
    assert all("_" not in title and not title[0].islower() for title in titles), titles


def test_a_series_of_an_older_run_has_the_words_of_its_name() -> None:
    assert series_title("shedding", "fig14a", "exact_16") == "exact 16"
    assert (
        series_title("shedding", "figure_of_the_past", "exact") == "Optimum or fair shares (exact)"
    )
