"""Schemas of an OpenAPI document: what a value is, and which columns a table of rows has."""

from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]


def resolved(schema: Schema, schemas: Schema) -> Schema:
    """Return a schema without references and without null as an alternative."""
    if "$ref" in schema:
        return resolved(schemas[schema["$ref"].rpartition("/")[2]], schemas)
    options = [item for item in (*schema.get("anyOf", ()), *schema.get("allOf", ()))
               if item.get("type") != "null"]  # fmt: skip
    # The name, default and description of a property are beside its alternatives.
    return {**resolved(options[0], schemas), **schema} if options else schema


def is_flat(schema: Schema, schemas: Schema) -> bool:
    """Return True if one word, or several of a list, express a value."""
    if schema.get("type") == "array":
        return resolved(schema.get("items", {}), schemas).get("type") not in ("array", "object")
    return schema.get("type") != "object"


def properties_of(schema: Schema, schemas: Schema) -> dict[str, Schema]:
    """Return the resolved properties of an object or of the rows of a list."""
    rows = schema
    while rows.get("type") == "array":
        rows = resolved(rows.get("items", {}), schemas)
    properties = rows.get("properties", {})
    return {name: resolved(item, schemas) for name, item in properties.items()}


def columns_of(schema: Schema, schemas: Schema) -> list[str]:
    """Return the columns that an object or the rows of a list declare, [] without a declaration."""
    rows = schema
    while rows.get("type") == "array":
        rows = resolved(rows.get("items", {}), schemas)
    return list(rows.get("x-columns", ()))
