"""Reading and writing of descriptions as YAML and JSON; errors have their place in the document."""

import json
import re
from typing import Any, Final, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from algorithms.strict_json import BadJson, JsonLimits, place_of, read_bounded
from controlplane.cluster_spec.document import BadDescription, ClusterDescription, SchemaPart
from controlplane.cluster_spec.validation import faults_of
from controlplane.formats.storable import unstorable

_Kind = TypeVar("_Kind", bound=BaseModel)
MAX_BYTES: Final = 64 * 2**20
_BOUNDS: Final = JsonLimits(size=MAX_BYTES, values=1_000_000)
MOST_REPORTED: Final = 20
_TOO_DEEP: Final = f"Is nested too deeply: at most {_BOUNDS.depth} levels"
_TAGS: Final = ("node", "task_ranges")


class _Loader(yaml.CSafeLoader):
    """A YAML 1.2 loader of JSON values only, without duplicate keys.

    In YAML 1.1 the stream `no` is false, and 18:30 a number: here both are text.
    """


class _Dumper(yaml.CSafeDumper):
    """Writes so that both kinds of YAML read the same."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write no aliases."""
        del data
        return True


_RESOLVED: Final = (
    ("bool", r"true|false", "tf"),
    ("int", r"[-+]?[0-9]+", "-+0123456789"),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("float", r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", "-+."),
    ("null", r"~|null|", ["~", "n", ""]),
)
_Loader.yaml_implicit_resolvers = {}
for _tag, _form, _first in _RESOLVED:
    for _kind in (_Loader, _Dumper):
        _kind.add_implicit_resolver(
            f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_form})\Z"), list(_first)
        )


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: set[Any] = set()
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise yaml.MarkedYAMLError(None, None, "a name must be text", key.start_mark)
        if key.value in seen:
            text = f"{key.value} is given twice"
            raise yaml.MarkedYAMLError(None, None, text, key.start_mark)
        seen.add(key.value)
    return {key.value: loader.construct_object(value, deep=True) for key, value in node.value}


def _integer(loader: _Loader, node: yaml.ScalarNode) -> int:
    return int(loader.construct_scalar(node))


def _float(loader: _Loader, node: yaml.ScalarNode) -> float:
    return float(re.sub(r"\.(inf|nan)", r"\1", str(loader.construct_scalar(node)).lower()))


_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)
_Loader.add_constructor("tag:yaml.org,2002:int", _integer)
_Loader.add_constructor("tag:yaml.org,2002:float", _float)


def parse_description(text: str) -> ClusterDescription:
    """Read YAML or JSON, which is YAML too. Raises `BadDescription`, with all faults at once."""
    description = _valid(ClusterDescription, text)
    if faults := faults_of(description):
        raise BadDescription({place_of(path): message for path, message in faults.items()})
    return description


def parse_schema(text: str) -> SchemaPart:
    """Read a document of one stream's schema. Raises `BadDescription`."""
    return _valid(SchemaPart, text)


def as_yaml(description: ClusterDescription) -> str:
    """Write a description as YAML; `described` reads the same again."""
    text: str = yaml.dump(
        description.to_json(), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100
    )
    return text


def as_json(description: ClusterDescription) -> str:
    """Write a description as JSON; `described` reads the same again."""
    return json.dumps(description.to_json(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _valid(kind: type[_Kind], text: str) -> _Kind:
    data = _data(text)
    if not isinstance(data, dict):
        named = ", ".join(list(kind.model_fields)[:3])
        raise BadDescription({"": [f"Must be a mapping with {named} and so on"]})
    if faults := dict(unstorable(data)):
        raise BadDescription({place_of(path): [f"It {why}"] for path, why in faults.items()})
    try:
        return kind.model_validate(data)
    except ValidationError as invalid:
        raise BadDescription(messages_of(invalid)) from None


def _data(text: str) -> Any:
    if len(text) > MAX_BYTES:
        raise BadDescription({"": [f"At most {MAX_BYTES // 2**20} MiB"]})
    try:
        return _json(text) if text.lstrip()[:1] == "{" else _yaml(text)
    except yaml.MarkedYAMLError as broken:
        where = _line_of(broken.problem_mark or broken.context_mark)
        raise BadDescription(
            {where: [f"Is not YAML: {broken.problem or broken.context}"]}
        ) from None
    except yaml.YAMLError as broken:
        raise BadDescription({"": [f"Is not YAML: {broken}"]}) from None
    except RecursionError:
        raise BadDescription({"": ["Is nested too deeply"]}) from None
    except ValueError as wrong:
        # A number of thousands of digits.
        raise BadDescription({"": [str(wrong)]}) from None


def _yaml(text: str) -> Any:
    # The parser of events needs no stack, but time by the square of the depth: it is stopped there.
    depth = 0
    for events, event in enumerate(yaml.parse(text, Loader=_Loader)):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _BOUNDS.depth:
            raise BadDescription({_line_of(event.start_mark): [_TOO_DEEP]})
        if events > _BOUNDS.values:
            raise BadDescription({"": [f"At most {_BOUNDS.values:,} values"]})
        if isinstance(event, yaml.AliasEvent):
            where = _line_of(event.start_mark)
            raise BadDescription({where: ["Aliases are not allowed: write it out"]})
    return yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader


def _line_of(mark: Any) -> str:
    return f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""


def _json(text: str) -> Any:
    try:
        return read_bounded(text.encode("utf-8", "surrogatepass"), _BOUNDS)
    except BadJson as broken:
        if broken.code == "syntax" and text.lstrip()[1:2] not in ('"', "}", ""):
            # A mapping in YAML's short form.
            return _yaml(text)
        where = f"line {broken.line}, column {broken.column}" if broken.line else broken.place
        raise BadDescription({where: [f"The document {broken}"]}) from None


def messages_of(invalid: ValidationError) -> dict[str, list[str]]:
    """Return the messages of a validation by place in the document."""
    messages: dict[str, list[str]] = {}
    for error in invalid.errors(include_url=False, include_context=False)[:MOST_REPORTED]:
        path = error["loc"]
        if path[:1] == ("placement",) and path[2:3] and path[2] in _TAGS:
            path = (*path[:2], *path[3:])
        messages.setdefault(place_of(path), []).append(_sentence(error["msg"], error["type"]))
    return messages


def _sentence(message: str, kind: str) -> str:
    if kind == "extra_forbidden":
        return "There is no such name here"
    if kind == "missing":
        return "Is missing"
    return message.replace("Input should be", "Must be")
