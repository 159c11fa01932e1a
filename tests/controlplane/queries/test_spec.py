"""The fields of a query are declared once; whatever has them has the declared ones."""

from argparse import ArgumentParser
from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError, create_model

from controlplane.api.queries.schemas import QueryCheckIn, QueryIn, QueryOut, TextIn
from controlplane.catalog.query_models import query_fields, response_fields, text_fields
from controlplane.cli.query_options import add_query_options
from controlplane.cluster_spec.document import QueryPart, TextPart
from controlplane.models import Query
from controlplane.queries.spec import DECLARED, QueryField, QuerySpec, spec_of, stored_values
from controlplane.wire.query_text import QueryText
from dashboard.queries.forms import FIELDS, field_groups, parsed
from tests.support.texts import SUMMARY

TOP = {item.name: item for item in DECLARED.fields}
TEXT = {item.name: item for item in DECLARED.text}
# Of a declaration with a field more at either place.
WIDER = replace(
    DECLARED,
    fields=(
        *DECLARED.fields,
        QueryField(
            "priority",
            int,
            3,
            {"title": "Priority", "description": "the higher the sooner", "ge": 1, "le": 9},
        ),
    ),
    text=(
        *DECLARED.text,
        QueryField("text.having", str, "", {"title": "Having", "description": "a condition"}),
    ),
)


@pytest.mark.parametrize(("model", "declared"), [
    (QueryIn, TOP), (TextIn, TEXT), (TextPart, TEXT),
])  # fmt: skip
def test_a_model_has_exactly_the_declared_fields_and_defaults(
    model: type[BaseModel], declared: dict[str, QueryField]
) -> None:
    assert list(model.model_fields) == list(declared)
    for name, field in model.model_fields.items():
        item = declared[name]
        assert field.is_required() == item.is_required
        assert (field.title, field.description) == (item.title, item.facts["description"])
        if not item.is_required:
            assert field.get_default(call_default_factory=True) in (item.default, [])


def test_a_description_adds_what_is_known_of_a_placed_query() -> None:
    assert list(QueryPart.model_fields)[: len(TOP)] == list(TOP)
    assert set(TOP) <= set(QueryCheckIn.model_fields)
    assert set(TOP) <= set(QueryOut.model_fields)


@pytest.mark.parametrize("models", [(QueryIn, TextIn), (QueryPart, TextPart)])
def test_the_schemas_have_the_declared_bounds(models: tuple[type[BaseModel], ...]) -> None:
    query, text = (model.model_json_schema()["properties"] for model in models)
    assert (query["tasks"]["minimum"], query["tasks"]["maximum"]) == (1, TOP["tasks"].facts["le"])
    assert query["retention_s"]["minimum"] == TOP["retention_s"].facts["ge"]
    assert query["name"]["maxLength"] == TOP["name"].facts["max_length"]
    assert query["streams"]["maxItems"] == TOP["streams"].facts["max_length"]
    assert text["window_s"]["exclusiveMinimum"] == 0
    assert text["columns"]["maxProperties"] == TEXT["columns"].facts["max_length"]
    assert text["right"]["items"]["type"] == "string"


def test_a_description_is_refused_beyond_a_bound_and_a_request_is_left_to_the_service() -> None:
    given: dict[str, Any] = {
        "name": "q",
        "streams": ["s"],
        "text": {"aggregates": {"n": "count(*)"}},
    }
    assert QueryIn(**given, tasks=2000).tasks == 2000
    with pytest.raises(ValidationError, match="less than or equal to 1024"):
        QueryPart(**given, tasks=2000)


def test_a_request_is_the_query_that_is_stored() -> None:
    text = {"aggregates": {"n": "count(*)"}, "right": ["t"], "on": [["a", "b"]], "slide_s": 5.0}
    spec = spec_of(QueryIn(name="q", streams=["s"], text=text, tasks=4, retention_s=90))
    assert (spec.reads, spec.text.slide_s, spec.text.right) == (("s", "t"), 5.0, ())
    columns = stored_values(spec)
    assert columns["task_count"] == 4
    assert {field.name for field in Query._meta.get_fields()} >= set(columns)
    for name, column in DECLARED.columns.items():
        if not TOP[name].is_required and TOP[name].default is not None:
            field: Any = Query._meta.get_field(column)
            assert field.get_default() == TOP[name].default


def test_the_form_shows_and_reads_every_field() -> None:
    groups = field_groups()
    own = [*groups["head"], *groups["retention"]]
    assert {item.path for item in own} | set(FIELDS) == {*TOP, *(i.path for i in DECLARED.text)}
    spec, _ = parsed({})
    assert spec == QuerySpec("", [], QueryText({}, key=[], on=[]), right=[])


def test_the_command_line_has_an_option_for_every_field() -> None:
    parser = ArgumentParser()
    add_query_options(parser)
    given = vars(parser.parse_args([]))
    assert set(given) == {*TOP, *TEXT} - {"name", "text"}
    for name in given:
        item = (TOP | TEXT)[name]
        assert item.is_required or given[name] in (item.default, [])


def test_a_field_more_is_in_everything_that_is_derived() -> None:
    text: Any = create_model("Text", **text_fields(checked=True, declaration=WIDER))
    query: Any = create_model("Query", **query_fields(text, checked=True, declaration=WIDER))
    read = query(name="q", streams=["s"], text={"aggregates": SUMMARY.aggregates})
    assert (read.priority, read.text.having) == (3, "")
    with pytest.raises(ValidationError, match="greater than or equal to 1"):
        query(name="q", streams=["s"], text=read.text, priority=0)
    assert "priority" in response_fields(WIDER)
    assert WIDER.columns["priority"] == "priority"
    groups = field_groups(WIDER)
    assert "priority" in [item.name for item in groups["numbers"]]
    assert "having" in [item.name for item in groups["expressions"]]
    parser = ArgumentParser()
    add_query_options(parser, WIDER)
    assert parser.parse_args(["--priority", "7"]).priority == 7
