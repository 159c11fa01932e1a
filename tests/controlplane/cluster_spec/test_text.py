"""A description is read as it was written, or every fault is told with its place."""

import json
from datetime import time

import pytest
from hypothesis import HealthCheck, given, settings

from controlplane.cluster_spec.document import BadDescription, ClusterDescription
from controlplane.cluster_spec.text import as_json, as_yaml, parse_description
from tests.support.descriptions import SMALL, descriptions, ruled


@given(descriptions())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_is_written_is_read_again(description: ClusterDescription) -> None:
    assert parse_description(as_yaml(description)) == description
    assert parse_description(as_json(description)) == description
    json.loads(as_json(description), parse_constant=_no_constant)


def _no_constant(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")


def test_words_that_older_yaml_takes_for_something_else_are_names() -> None:
    """`no` is a stream, and 18:30 a time of day."""
    found = parse_description(SMALL + "policy: {auto_from: 18:30}\n")
    assert found.streams[2].name == "no"
    assert found.policy.auto_from == time(18, 30)


@pytest.mark.parametrize(
    ("before", "after", "place", "told"),
    [
        ("name: c, streams: [level, flow]", "name: c, streams: [level, ebb]",
         "queries[2].streams[1]", "There is no stream ebb"),
        ("window_s: 10", "window_s: '10'", "queries[2].text.window_s", "Must be a valid number"),
        ("window_s: 10", "windows: 10", "queries[2].text.windows",
         "There is no such name here"),
        ("name: a, streams: [level]", "name: a, streams: [level], value: x", "queries[0].value",
         "There is no such name here"),
        (", text: {aggregates: {n: count(*)}}}", "}", "queries[3].text", "Is missing"),
        ("slug: pump", "slug: the pump", "cluster.slug", "String should match"),
        ("{slug: pump, name: Pump works}", "{slug: pump}", "cluster.name", "Is missing"),
        ("a: 0", "a: 7", "placement.a", "There is no node 7"),
        ("a: 0", "a: x", "placement.a", "Must be a valid integer"),
        ("first: 6", "first: 5", "placement.e[1].first", "Must be 6"),
        ("stop: 8", "stop: 9", "placement.e[1].stop", "at most 8"),
        ("name: b", "name: a", "queries[1].name", "a is given twice"),
        ("index: 2", "index: 1", "nodes[2].index", "1 is given twice"),
        ("index: 2", "index: 4", "nodes[2].index", "below the cluster's 4 slots"),
        ("depth: 3", "depth: .nan", "streams[2].meta.depth", "finite"),
        ("Pump works", '"Pump\\0"', "cluster.name", "a character that is none"),
        ("weir: 1", "weir: 2", "weir", "Must be 1"),
        ("weir: 1", "weir: 1\nweir: 1", "line 2, column 1", "weir is given twice"),
        ("placement:", "policy: {watch: loud}\nplacement:", "policy.watch", "Must be 'off'"),
        ("name: north", "name: &x north", "line 4, column 23", ""),
    ],
)  # fmt: skip
def test_a_fault_is_told_with_its_place(before: str, after: str, place: str, told: str) -> None:
    text = SMALL.replace("name: south", "name: *x" if not told else
                                                    "name: south")  # fmt: skip
    with pytest.raises(BadDescription) as refused:
        parse_description(text.replace(before, after, 1))
    if told:
        assert told in refused.value.faults[place][0]
    else:
        assert "Aliases are not allowed" in next(iter(refused.value.faults.values()))[0]


@pytest.mark.parametrize(
    ("before", "after", "place", "told"),
    [
        ("aggregator: 1", "aggregator: 7", "queries[4].aggregator", "There is no node 7"),
        ("  key_grouping: partial_key\n", "", "queries[4].aggregator", "Needs a key grouping"),
        ("grouping: partial_key", "grouping: best", "queries[4].key_grouping", "Must be one of"),
        ("  aggregator: 1", "  key_grouping_parameters: {eps: 1.0}\n  aggregator: 1",
         "queries[4].key_grouping_parameters.eps", "Is not a parameter"),
        ("  aggregator: 1", "  key_grouping_parameters: {weighted: 1}\n  aggregator: 1",
         "queries[4].key_grouping_parameters.weighted", "Must be true or false"),
        ("  aggregator: 1", "  key_grouping_parameters: [1]\n  aggregator: 1",
         "queries[4].key_grouping_parameters", "valid dictionary"),
        ("  e:\n  - {node: 0, first: 0, stop: 6}\n  - {node: 1, first: 6, stop: 8}\n", "",
         "queries[4].aggregator", "Needs a placement"),
        ("subject: d", "subject: x", "exclusions[0].subject", "There is no query x"),
        ("subject: level", "subject: sea", "exclusions[1].subject", "There is no stream sea"),
        ("kind: stream, subject: level", "kind: node, subject: level",
         "exclusions[1].subject", "There is no node level"),
        ("kind: stream, subject: level", "kind: query, subject: d",
         "exclusions[1].subject", "query d is given twice"),
        ("kind: query", "kind: task", "exclusions[0].kind", "Must be 'query'"),
        ("'2999-12-24T00:00:00Z'", "'2999-12-24T00:00:00'", "blackouts[1].starts_at", "timezone"),
        ("{stream: flow, share", "{stream: ebb, share", "drops[0].stream", "There is no stream"),
        ("query: c, share", "query: x, share", "drops[1].query", "There is no query x"),
        ("query: c, share", "query: b, share", "drops[1].query", "b does not read level"),
        ("query: c, share", "query: e, share", "drops[2].stream", "level to e is given twice"),
        ("share: 0.25", "share: 0", "drops[0].share", "Must be greater than 0"),
        ("share: 0.25", "share: 1.5", "drops[0].share", "Must be less than or equal to 1"),
    ],
)  # fmt: skip
def test_a_rule_about_what_there_is_not_is_a_fault(
    before: str, after: str, place: str, told: str
) -> None:
    assert before in ruled()
    with pytest.raises(BadDescription) as refused:
        parse_description(ruled().replace(before, after, 1))
    assert told in refused.value.faults[place][0]


@pytest.mark.parametrize("text", ["", "[1]", "a: [", '{"weir": 1', "{" * 5000, "\t- x", "1" * 5000])
def test_what_is_no_document_is_refused(text: str) -> None:
    with pytest.raises(BadDescription):
        parse_description(text)


def test_all_faults_are_told_at_once() -> None:
    text = SMALL.replace("a: 0", "a: 7").replace("[flow]", "[ebb]")
    with pytest.raises(BadDescription) as refused:
        parse_description(text)
    assert set(refused.value.faults) == {"placement.a", "queries[1].streams[0]"}


@pytest.mark.parametrize(
    "text",
    [
        "[" * 200_000,
        "{" * 200_000,
        '{"a": ' * 100_000,
        '{"clusters": ' + "[" * 200_000,
        "- " * 100_000,
        "{a: " * 100_000,
        "a: " + "[" * 65 + "]" * 65,
    ],
)
def test_deep_nesting_is_refused(text: str) -> None:
    """It ended the process with a segmentation fault after a minute."""
    with pytest.raises(BadDescription) as refused:
        parse_description(text)
    assert refused.value.faults
