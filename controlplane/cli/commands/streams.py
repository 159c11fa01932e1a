"""weir streams."""

import sys
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from controlplane.access.roles import Actor, require_member
from controlplane.catalog.computations import schema_of
from controlplane.catalog.streams import (
    StreamFilters,
    kind_text,
    rows_of_streams,
    stream_by_key,
    streams_listing,
)
from controlplane.cli.actors import actor_of, viewed
from controlplane.cli.codes import Code, Refused
from controlplane.cli.input_files import text_of
from controlplane.cli.output import (
    print_answer,
    print_facts,
    print_json,
    print_page,
    print_sentence,
    print_table,
    values_of,
)
from controlplane.cluster_spec.text import parse_schema
from controlplane.errors import Invalid
from controlplane.models import Cluster, Stream
from controlplane.records.bodies import Format, format_of_file
from controlplane.topology.schema_change import patched, preview, schema_from, set_schema
from controlplane.topology.schemas.assessment import Assessed
from controlplane.topology.schemas.inference import Inferred, infer
from controlplane.topology.schemas.samples import sample_of_file
from controlplane.topology.streams import StreamSpec, register
from controlplane.wire.schema import ColumnSpec, StreamSchema

_NULLABLE: Final = {True: "yes", False: "no"}


def schema_in_file(path: Path) -> StreamSchema:
    """Return the schema in a file. Raises `Refused`, `BadDescription`, `Invalid`, `OSError`."""
    return schema_from(parse_schema(text_of(path)).model_dump())


def inferred_from(path: Path, named: str | None) -> Inferred:
    """Return the schema inferred from the records of a file. Raises `Refused`, `Invalid`."""
    kind = Format(named) if named else format_of_file(path.name)
    if kind is None:
        known = ", ".join(item.value for item in Format)
        raise Refused(
            Code.WRONG, f"{path}: its name has no known extension", advice=f"--format: {known}"
        )
    return infer(*sample_of_file(path, kind))


def as_yaml(schema: dict[str, Any]) -> str:
    """Write a schema as YAML, a line for each column; `schema_in` reads the same again."""
    flow = yaml.safe_dump(
        schema["columns"], default_flow_style=None, sort_keys=False, allow_unicode=True, width=1000
    )
    rest = {name: value for name, value in schema.items() if name != "columns"}
    tail = yaml.safe_dump(rest, sort_keys=False, allow_unicode=True)
    return f"columns:\n{flow}{tail}"


def print_schema(schema: StreamSchema) -> None:
    """Print a schema for people."""
    columns = {"column": "name", "type": "name", "nullable": "text", "in queries": "text"}
    rows = [
        [column.name, column.type, _NULLABLE[column.nullable], kind_text(schema, column.name)]
        for column in schema.columns
    ]
    print_table(columns, rows)
    print_facts({
        "event time": schema.event_time or "time of arrival",
        "watermark delay": f"{schema.watermark_delay_s:g} s",
        "furthest future": f"{schema.max_future_s:g} s",
        "idle after": f"{schema.idle_after_s:g} s",
    })  # fmt: skip


def print_changes(changes: list[Assessed]) -> bool:
    """Print the effect of a schema change; return True if it is allowed."""
    if not changes:
        print_sentence("nothing would change")
    for change in changes:
        mark = "refused" if change.refusal else "allowed"
        detail = f" ({change.change.detail})" if change.change.detail else ""
        print_sentence(f"{mark}: {change.sentence()}{'' if change.refusal else detail}")
    return not any(change.refusal for change in changes)


_COLUMNS: Final = {
    "stream": ("name", "name"), "title": ("title", "text"),
    "declared": ("declared_rate", "number"), "rate": ("rate", "number"),
    "split": ("split", "number"), "queries": ("queries", "number"),
}  # fmt: skip


def list_streams(given: Namespace) -> None:
    """Print one page of a cluster's streams."""
    _, cluster = viewed(given)
    order = f"-{given.order}" if given.reverse else given.order
    filters = StreamFilters.of(vars(given) | {"q": given.search}, order=order)
    page = streams_listing(cluster, filters).page
    rows = [
        values_of(row.stream, "name title declared_rate rate split") | {"queries": row.queries}
        for row in page.rows
    ]
    print_page(given, page, "streams", rows, _COLUMNS)


def show_stream(given: Namespace) -> None:
    """Print a stream and its schema."""
    _, cluster = viewed(given)
    row = rows_of_streams([stream_by_key(cluster, given.stream)])[0]
    stream, schema = row.stream, row.schema
    facts = {
        "stream": stream.name, "id": stream.pk, "title": stream.title or None,
        "declared rate": stream.declared_rate, **values_of(stream, "rate split"),
        "queries": row.queries, "dead letters": row.dead_records,
    }  # fmt: skip
    if given.json:
        print_json(facts | {"schema": schema.to_json() if schema else None})
        return
    print_facts(facts)
    if schema is None:
        print_sentence("it has no schema yet: weir streams change --schema")
        return
    print_schema(schema)


def infer_schema(given: Namespace) -> None:
    """Print the schema that a sample suggests, as YAML that `--schema` takes."""
    require_member(actor_of(given))
    inferred = inferred_from(given.file, given.format)
    if given.json:
        print_json({**inferred.schema_json(), "faults": dict(inferred.faults)})
        return
    for column in inferred.columns:
        if column.note:
            print_sentence(f"# {column.name}: {column.note}")
    for field, why in inferred.faults.items():
        print_sentence(f"# fault: {field}: {why}")
    sys.stdout.write(as_yaml(inferred.schema_json()))


def declare_stream(given: Namespace) -> int:
    """Register a stream with the schema of a file, or the one that a sample suggests."""
    actor, cluster = viewed(given)
    schema = _declared_schema(given)
    if given.apply:
        spec = StreamSpec(given.stream, given.title, schema.to_json(), given.rate)
        stream = _registered(actor, cluster, spec)
        values = values_of(stream, "id name schema")
        print_answer(given, values, f"{stream.name} declared, id {stream.pk}")
        return Code.DONE
    if given.json:
        print_json(schema.to_json())
    else:
        print_schema(schema)
        print_sentence(f"{given.stream} is not declared yet: --apply does it")
    return Code.DONE


def _registered(actor: Actor, cluster: Cluster, spec: StreamSpec) -> Stream:
    try:
        return register(actor, cluster, [spec])[0]
    except Invalid as invalid:
        raise Invalid(invalid.rows.get(0) or invalid.fields) from None


def _declared_schema(given: Namespace) -> StreamSchema:
    if given.schema is not None:
        return schema_in_file(given.schema)
    row = inferred_from(given.sample, given.format).schema_json()
    if given.event_time is not None:
        row["event_time"] = given.event_time
    return schema_from(row)


def change_schema(given: Namespace) -> int:
    """Print the effect of a schema change, or apply it."""
    actor, cluster = viewed(given)
    stream = stream_by_key(cluster, given.stream)
    new = _changed_schema(given, schema_of(stream.schema))
    if given.apply:
        stream = set_schema(actor, stream, new, given.reason)
        print_answer(given, stream.schema, f"the schema of {stream.name} is changed")
        return Code.DONE
    changes = preview(stream, new)
    if given.json:
        print_json([change.to_json() for change in changes])
        return Code.DONE
    allowed = print_changes(changes)
    if changes and allowed:
        print_sentence("nothing is changed yet: --apply does it")
    return Code.DONE if allowed else Code.REFUSED


def _changed_schema(given: Namespace, old: StreamSchema | None) -> StreamSchema:
    settings = {
        name: value
        for name, value in (
            ("watermark_delay_s", given.watermark_delay), ("max_future_s", given.max_future),
            ("idle_after_s", given.idle_after),
        )
        if value is not None
    }  # fmt: skip
    start = old if given.schema is None else schema_in_file(given.schema)
    known = {column.name: column for column in (start.columns if start else ())}
    columns = [_column(text, known) for text in given.column]
    return patched(start, columns, given.remove, settings)


def _column(text: str, known: Mapping[str, ColumnSpec]) -> ColumnSpec:
    name, colon, kind = text.partition(":")
    if not colon:
        message = f"--column {text}: must be NAME:TYPE"
        raise Refused(Code.WRONG, message, advice="as --column price:decimal(12, 2)")
    present = known.get(name)
    return ColumnSpec(name, kind.strip(), nullable=present is None or present.nullable)
