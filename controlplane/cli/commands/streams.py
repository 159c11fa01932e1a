"""weir streams, but for those commands that are one operation of the API."""

import sys
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import asdict
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import yaml

from controlplane.cli.client.api import Api, cluster_path, stream_path
from controlplane.cli.client.connection import api_of
from controlplane.cli.codes import CliError, ExitCode
from controlplane.cli.input_files import text_of
from controlplane.cli.output import (
    print_answer,
    print_facts,
    print_json,
    print_sentence,
    print_table,
)
from controlplane.cli.settings import settings_of
from controlplane.cluster_spec.text import parse_schema
from controlplane.records.bodies import Format, format_of_file
from controlplane.topology.schemas.evolution import patched, schema_from
from controlplane.topology.schemas.inference import Inferred, infer
from controlplane.topology.schemas.samples import sample_of_file
from controlplane.wire.schema import ColumnSpec, StreamSchema, kind_text

_NULLABLE: Final = {True: "yes", False: "no"}


def schema_in_file(path: Path) -> StreamSchema:
    """Return the schema in a file. Raises `CliError`, `BadDescription`, `Invalid`, `OSError`."""
    return schema_from(parse_schema(text_of(path)).model_dump())


def inferred_from(path: Path, named: str | None) -> Inferred:
    """Return the schema inferred from the records of a file. Raises `CliError`, `Invalid`."""
    kind = Format(named) if named else format_of_file(path.name)
    if kind is None:
        known = ", ".join(item.value for item in Format)
        raise CliError(
            ExitCode.WRONG, f"{path}: its name has no known extension", advice=f"--format: {known}"
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


def print_changes(preview: Mapping[str, Any]) -> bool:
    """Print the effect of a schema change; return True if it is allowed."""
    changes = preview["changes"]
    if not changes:
        print_sentence("nothing would change")
    for change in changes:
        mark = "refused" if change["reason"] else "allowed"
        detail = f" ({change['detail']})" if change["detail"] and not change["reason"] else ""
        print_sentence(f"{mark}: {change['sentence']}{detail}")
    return bool(preview["allowed"])


def _schema_of(api: Api, path: str) -> StreamSchema | None:
    """Return the schema of a stream at a path, None if it has none yet. Raises `CliError`."""
    if api.send("GET", f"{path}/schema").status != HTTPStatus.NOT_FOUND:
        return schema_from(api.get(f"{path}/schema"))
    # A stream that does not exist is refused here.
    api.get(path)
    return None


def infer_schema(given: Namespace) -> None:
    """Print the schema that a sample suggests, as YAML that `--schema` takes."""
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


def declare_stream(given: Namespace) -> None:
    """Register a stream with the schema of a file, or the one that a sample suggests."""
    api, schema = api_of(given), _declared_schema(given)
    if given.apply:
        row = {"name": given.stream, "title": given.title, "schema": schema.to_json(),
               "declared_rate": given.rate}  # fmt: skip
        stream = api.post(f"{cluster_path(given)}/streams", streams=[row])[0]
        values = {"id": stream["id"], "name": stream["name"], "schema": schema.to_json()}
        print_answer(given, values, f"{stream['name']} declared, id {stream['id']}")
        return
    # An unknown cluster is refused without --apply, too.
    api.get(cluster_path(given))
    if given.json:
        print_json(schema.to_json())
        return
    print_schema(schema)
    print_sentence(f"{given.stream} is not declared yet: --apply does it")


def _declared_schema(given: Namespace) -> StreamSchema:
    if given.schema is not None:
        return schema_in_file(given.schema)
    row = inferred_from(given.sample, given.format).schema_json()
    if given.event_time is not None:
        row["event_time"] = given.event_time
    return schema_from(row)


def change_schema(given: Namespace) -> int:
    """Print the effect of a schema change, or apply it."""
    api, path = api_of(given), f"{stream_path(given)}/schema"
    old = _schema_of(api, stream_path(given))
    start = old if given.schema is None else schema_in_file(given.schema)
    known = {column.name: column for column in (start.columns if start else ())}
    columns = [_column(text, known) for text in given.column]
    settings = _settings(given)
    new = patched(start, columns, given.remove, settings)
    if given.apply:
        # Without --schema only these parts: another change since the reading stays.
        parts = settings | {"columns": [asdict(column) for column in columns],
                            "remove": given.remove}  # fmt: skip
        method, body = ("PATCH", parts) if given.schema is None else ("PUT", new.to_json())
        schema = api.request(method, path, body=body | {"reason": given.reason})
        print_answer(given, schema, f"the schema of {given.stream} is changed")
        return ExitCode.DONE
    preview = api.post(f"{path}/preview", **new.to_json())
    if given.json:
        print_json(preview["changes"])
        return ExitCode.DONE
    allowed = print_changes(preview)
    if preview["changes"] and allowed:
        print_sentence("nothing is changed yet: --apply does it")
    return ExitCode.DONE if allowed else ExitCode.REFUSED


def _settings(given: Namespace) -> dict[str, float]:
    settings = (
        ("watermark_delay_s", given.watermark_delay), ("max_future_s", given.max_future),
        ("idle_after_s", given.idle_after),
    )  # fmt: skip
    return {name: value for name, value in settings if value is not None}


def _column(text: str, known: Mapping[str, ColumnSpec]) -> ColumnSpec:
    name, colon, kind = text.partition(":")
    if not colon:
        message = f"--column {text}: must be NAME:TYPE"
        raise CliError(ExitCode.WRONG, message, advice="as --column price:decimal(12, 2)")
    present = known.get(name)
    return ColumnSpec(name, kind.strip(), nullable=present is None or present.nullable)


def characteristics(given: Namespace) -> None:
    """Print the characteristics of a stream, or declare them: those without a value end."""
    api, path = api_of(given), f"{stream_path(given)}/characteristics"
    row = api.get(path)
    if given.values:
        changed = row["declared"] | settings_of(given.values)
        kept = {name: value for name, value in changed.items() if value not in (None, "")}
        stream = api.request("PUT", path, body=kept | {"reason": given.reason})
        row["declared"] = stream["characteristics"]
    if given.json:
        print_json(row)
        return
    parts = (row["declared"], row["measured"])
    names = dict.fromkeys(name for part in parts for name in part)
    columns = {"characteristic": "name", "declared": "text", "measured": "text"}
    rows = [[name, *(part.get(name) for part in parts)] for name in names]
    print_table(columns, rows, "none is declared or measured")
