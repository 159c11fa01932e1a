"""Key groupings of queries: columns, routes, labels, and faults of parameters by field."""

from typing import Any

import pytest

from algorithms.partitioning.catalog import GROUPINGS, fields_of, grouping_text
from controlplane.models import Query
from controlplane.queries.key_groupings import (
    columns_of,
    grouping_faults,
    label_of,
    read_parameters,
    route_text,
    stored_parameters,
)


@pytest.mark.parametrize("name", GROUPINGS)
def test_a_grouping_is_stored_and_read_from_its_route(name: str) -> None:
    defaults = {field.name: field.default for field in fields_of(name)}
    assert stored_parameters(name, defaults) == {}
    changed = stored_parameters(name, defaults | {"weighted": not defaults["weighted"]})
    assert changed == {"weighted": not defaults["weighted"]}
    for parameters in ({}, changed):
        text = route_text(name, parameters)
        assert text == grouping_text(name, parameters)
        assert columns_of(text, aggregated=True) == (name, parameters)
    assert len(name) <= (Query._meta.get_field("key_grouping").max_length or 0)


def test_no_grouping_is_the_plain_key_without_an_aggregator() -> None:
    assert route_text("", {}) == route_text("key", {}) == ""
    assert columns_of("", aggregated=False) == ("", {})
    assert columns_of("", aggregated=True) == ("key", {})


def test_a_table_with_values_beyond_the_bounds_stays_readable() -> None:
    text = route_text("random_choices", {"eps": -1.0})
    assert columns_of(text, aggregated=True) == ("random_choices", {"eps": -1.0})


def test_a_label_has_the_parameters_that_are_given() -> None:
    assert label_of("") == GROUPINGS["key"].title
    text = grouping_text("random_choices", {"eps": 0.05, "weighted": False})
    title = GROUPINGS["random_choices"].title
    assert label_of(text) == f"{title} (uneven load allowed = 0.05, use the capacities = no)"
    assert label_of('{"grouping":"of_tomorrow"}') == '{"grouping":"of_tomorrow"}'


@pytest.mark.parametrize(
    ("name", "parameters", "field", "fault"),
    [
        ("best", {}, "key_grouping", "Must be one of key, shuffle, partial_key"),
        ("x" * 90, {}, "key_grouping", f"not {'x' * 40}"),
        ("", {"eps": 0.1}, "key_grouping_parameters", "Needs a key grouping"),
        ("partial_key", {"eps": 0.1}, "key_grouping_parameters.eps", "Is not a parameter"),
        ("random_choices", {"eps": -1.0}, "key_grouping_parameters.eps", "Must be at least 0"),
        ("random_choices", {"eps": "much"}, "key_grouping_parameters.eps", "Must be a number"),
        ("random_choices", {"eps": None}, "key_grouping_parameters.eps", "Must be a number"),
        ("random_choices", {"seed": True}, "key_grouping_parameters.seed", "Must be a whole"),
        ("shuffle", {"weighted": 1}, "key_grouping_parameters.weighted", "Must be true or false"),
    ],
)
def test_a_fault_is_at_its_field(
    name: str, parameters: dict[str, Any], field: str, fault: str
) -> None:
    faults = grouping_faults(name, parameters, joins=False)
    assert list(faults) == [field]
    assert fault in faults[field][0]


def test_all_wrong_parameters_have_faults() -> None:
    faults = grouping_faults("random_choices", {"eps": -1.0, "seed": 0.5}, joins=False)
    assert set(faults) == {"key_grouping_parameters.eps", "key_grouping_parameters.seed"}


@pytest.mark.parametrize(
    ("name", "parameters"), [("partial_key", {}), ("shuffle", {}), ("key", {"weighted": True})]
)
def test_a_join_has_the_plain_key_only(name: str, parameters: dict[str, Any]) -> None:
    assert not grouping_faults(name, parameters, joins=False)
    assert list(grouping_faults(name, parameters, joins=True)) == ["key_grouping"]
    assert not grouping_faults("key", {"weighted": False}, joins=True)
    assert not grouping_faults("", {}, joins=True)


def test_texts_are_read_as_the_fields_of_the_grouping() -> None:
    texts = {"eps": "0.05", "seed": " 7", "weighted": "no", "odd": "1"}
    values, faults = read_parameters("random_choices", texts)
    assert values == {"eps": 0.05, "seed": 7, "weighted": False, "odd": "1"}
    assert not faults
    values, faults = read_parameters("random_choices", {"eps": "much", "seed": "1.5"})
    assert values == {}
    assert set(faults) == {"key_grouping_parameters.eps", "key_grouping_parameters.seed"}
    assert read_parameters("best", {"eps": "1"}) == ({"eps": "1"}, {})
