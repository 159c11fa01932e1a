"""Schemas in files and samples, and their output."""

from pathlib import Path
from typing import Any, Final

import yaml

from controlplane.catalog.streams import kind_text
from controlplane.cli.codes import Code, Refused
from controlplane.cli.documents import text_of
from controlplane.cli.output import print_facts, print_sentence, print_table
from controlplane.cluster_spec.text import parse_schema
from controlplane.records.bodies import Format, format_of_file
from controlplane.topology.schema_change import schema_from
from controlplane.topology.schemas.assessment import Assessed
from controlplane.topology.schemas.inference import Inferred, infer
from controlplane.topology.schemas.samples import sample_of_file
from controlplane.wire.schema import StreamSchema

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
