"""Each operation of the API has a command, or a reason for having none."""

import json
from typing import Final

import pytest

from controlplane.api.application import api
from controlplane.cli.operations.derived import operations_of
from controlplane.cli.operations.names import DEFAULTS, NAMES, OPTIONS, UNNAMED, short_id
from controlplane.cli.parser import commands_of, parser
from controlplane.cli.waiting import WAITS

pytestmark = pytest.mark.nightly("commands")

DOCUMENT: Final = json.loads(
    json.dumps(api.get_openapi_schema(path_prefix="/api/v1/"), default=str)
)
OPERATIONS: Final = list(operations_of(DOCUMENT))
COMMANDS: Final = commands_of(parser(DOCUMENT))


def test_each_operation_has_a_command_of_its_own_or_a_reason() -> None:
    ids = [short_id(entry["operationId"])
           for methods in DOCUMENT["paths"].values() for entry in methods.values()]  # fmt: skip
    assert {*NAMES, *UNNAMED} <= set(ids)
    names = [operation.command for operation in OPERATIONS]
    assert len(names) == len(set(names)) == len(ids) - len(UNNAMED)
    own = {name for name, _ in commands_of(parser(None))}
    assert not own & set(names)
    assert own | set(names) == {name for name, _ in COMMANDS}
    assert {*DEFAULTS, *WAITS} <= set(names)


def test_each_renamed_value_exists() -> None:
    fields = {f"{item.command} {field.name}": field for item in OPERATIONS for field in item.fields}
    known = {*fields, *(field.name for field in fields.values())}
    assert set(OPTIONS) <= known


def test_no_two_values_of_a_command_have_a_name() -> None:
    for operation in OPERATIONS:
        options = [field.option for field in operation.fields]
        assert len(options) == len(set(options)), operation.command


def test_every_command_explains_itself() -> None:
    for name, command in COMMANDS:
        assert f"weir {name}" in command.format_help()
