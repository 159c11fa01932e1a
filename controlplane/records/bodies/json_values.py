"""JSON with numbers that keep all their digits, in bodies and in cells of CSV."""

import json
from collections.abc import Callable
from typing import Any

from algorithms.strict_json import BadJson, check_bounds, object_of
from controlplane.wire.records.casts import CastRules
from controlplane.wire.records.conversion import Converted
from controlplane.wire.records.numbers import NumberText, is_text
from controlplane.wire.records.values import convert_array, convert_values


def json_reader(**options: Any) -> Callable[[str], Any]:
    """Return a function from JSON text to its value, which raises `ValueError`.

    Numbers with a fraction or an exponent are `NumberText`; so is every number of a text that has
    an integer of more digits than Python converts. `options`: of `json.JSONDecoder`.
    """
    strict = {"parse_constant": no_constant, "object_pairs_hook": object_of}
    given: dict[str, Any] = {"parse_float": NumberText, **strict, **options}
    read = json.JSONDecoder(**given).decode
    read_long = json.JSONDecoder(parse_int=NumberText, **given).decode

    def value_of(text: str) -> Any:
        try:
            return read(text)
        except (json.JSONDecodeError, BadJson):
            raise
        except ValueError:
            return read_long(text)

    return value_of


def no_constant(name: str) -> Any:
    """Raise `BadJson` for a constant of Python's parser."""
    raise BadJson("number", f'{name} is not JSON; write "{name}" in quotes in a float column')


_read = json_reader()


def convert_column(array: Any, target: Any, rules: CastRules) -> Converted:
    """Return an Arrow array as `convert_array` does, and text that is JSON as a nested type."""
    if rules.textual and is_text(array.type) and target.num_fields:
        inner = [_from_json(text) for text in array.to_pylist()]
        return convert_values(inner, target, CastRules(zone=rules.zone))
    return convert_array(array, target, rules)


def _from_json(text: str | None) -> Any:
    """Return the nested value of a cell with JSON, or its text if it is not JSON within bounds."""
    if text is None:
        return None
    try:
        check_bounds(text.encode())
        return _read(text)
    except (ValueError, RecursionError):
        return text
