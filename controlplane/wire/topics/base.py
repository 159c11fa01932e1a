"""What the declarations of all sources have: a kind, JSON, an identity, and their faults."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, asdict, fields
from typing import Any, ClassVar, Final, Self

from controlplane.wire.errors import WireError
from controlplane.wire.schema import StreamSchema

# The kind of rows that name none.
TOPIC: Final = "topic"


class BadSource(WireError):
    """An invalid declaration of a source: messages by field."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        self.fields = dict(fields)
        super().__init__("; ".join(f"{name}: {why}" for name, why in fields.items()))


class StreamSource(ABC):
    """The base of declarations, which are frozen dataclasses.

    `kind`: the name in JSON; `about`: the meaning of each field, for API, description and form.
    """

    kind: ClassVar[str]
    about: ClassVar[Mapping[str, str]]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StreamSource) and self.to_text() == other.to_text()

    def __hash__(self) -> int:
        return hash(self.to_text())

    @property
    @abstractmethod
    def identity(self) -> str:
        """Return what makes offsets of two declarations offsets of the same records."""

    @property
    @abstractmethod
    def place(self) -> str:
        """Return what is read, and from where, for pages and messages."""

    @property
    def stops_on_loss(self) -> bool:
        """Return whether a partition stops if unread records are gone, else they are counted."""
        return False

    def group_of(self, cluster: str, stream: int) -> str:
        """Return the name under which a stream reads."""
        return f"weir-{cluster}-{stream}"

    @abstractmethod
    def faults_with_schema(self, schema: StreamSchema) -> dict[str, str]:
        """Return by field why records of the source cannot be records of a schema."""

    def refusals(self) -> dict[str, str]:
        """Return by field which places the list of destinations of the site does not have."""
        return {}

    def to_json(self) -> dict[str, Any]:
        """Return the declaration as JSON values, without defaults. It has no secret."""
        values = {} if self.kind == TOPIC else {"kind": self.kind}
        defaults = defaults_of(type(self))
        return values | {
            name: value
            for name, value in asdict(self).items()  # type: ignore[call-overload]  # a dataclass
            if name not in defaults or value != defaults[name]
        }

    def to_text(self) -> str:
        """Return the declaration as canonical JSON."""
        return json.dumps(self.to_json(), separators=(",", ":"), sort_keys=True)

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Self:
        """Return the declaration that `to_json` wrote. Raises `BadSource`."""
        given = {name: value for name, value in row.items() if name != "kind"}
        if missing := required_of(cls) - given.keys():
            raise BadSource(dict.fromkeys(sorted(missing), "is missing"))
        if unknown := given.keys() - {field.name for field in fields(cls)}:  # type: ignore[arg-type]  # a dataclass
            text = f"is not a setting of the kind {cls.kind}"
            raise BadSource(dict.fromkeys(sorted(unknown), text))
        try:
            return cls(**given)
        except (TypeError, AttributeError) as error:
            raise BadSource({"source": f"is not as it should be: {error}"[:200]}) from error


def defaults_of(declaration: Any) -> dict[str, Any]:
    """Return the default by field of a declaration."""
    result = {}
    for field in fields(declaration):
        if field.default is not MISSING:
            result[field.name] = field.default
        elif field.default_factory is not MISSING:
            result[field.name] = field.default_factory()
    return result


def required_of(declaration: Any) -> set[str]:
    """Return the fields of a declaration without a default."""
    return {field.name for field in fields(declaration)} - defaults_of(declaration).keys()


def metadata_faults(
    metadata: Mapping[str, str], schema: StreamSchema, types: Mapping[Any, str]
) -> dict[str, str]:
    """Return by field which columns of metadata a schema does not have in their types."""
    known = {column.name: column.type for column in schema.columns}
    return {
        f"metadata.{name}": f"must be a column of type {types[kind]}"
        for name, kind in metadata.items()
        if known.get(name) != types[kind]
    }
