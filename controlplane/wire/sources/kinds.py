"""The kinds of sources: a further one is a declaration in this tuple, and its package of readers.

A declaration of the kind `x` is read by the modules `latest`, `read` and `browse` of the package
`workers.pipeline.sources.x`.
"""

import json
from collections.abc import Mapping
from dataclasses import fields
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from controlplane.wire.sources.files import FileSource
from controlplane.wire.sources.generator import GeneratorSource
from controlplane.wire.topics.base import TOPIC, BadSource, StreamSource, defaults_of
from controlplane.wire.topics.source import TopicSource

KINDS: Final[Mapping[str, type[StreamSource]]] = MappingProxyType(
    {kind.kind: kind for kind in (TopicSource, FileSource, GeneratorSource)}
)


def source_from_json(row: Mapping[str, Any]) -> StreamSource:
    """Return the source that `to_json` wrote. Raises `BadSource`."""
    return source_from_text(json.dumps(row, sort_keys=True))


@lru_cache(maxsize=1024)
def source_from_text(text: str) -> StreamSource:
    """Return the cached source of a text by `to_text`. Raises `BadSource`."""
    row = json.loads(text)
    name = row.get("kind", TOPIC)
    if not isinstance(name, str) or name not in KINDS:
        raise BadSource({"kind": f"must be {' or '.join(KINDS)}"})
    return KINDS[name].from_json(row)


class SourceField(NamedTuple):
    """A field of one or more kinds: its type, its default and its meaning."""

    type: Any
    default: Any
    about: str


def fields_of_kinds() -> dict[str, SourceField]:
    """Return the fields of all kinds, for bodies that declare a source of any of them."""
    meaning = "`" + "`, `".join(KINDS) + "`"
    result = {"kind": SourceField(str, TOPIC, meaning)}
    for kind in KINDS.values():
        defaults = defaults_of(kind)
        for field in fields(kind):  # type: ignore[arg-type]  # every declaration is a dataclass
            about = kind.about[field.name]
            if kind.kind != TOPIC:
                about = f"{kind.kind}: {about}"
            if (known := result.get(field.name)) is None:
                default = defaults.get(field.name, "")
                result[field.name] = SourceField(field.type, default, about)
            else:
                result[field.name] = known._replace(about=f"{known.about}; {about}")
    return result
