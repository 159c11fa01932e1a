"""The declaration of a directory or object store whose files are the records of a stream."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import ClassVar, Final

from controlplane.wire.network.destinations import (
    NotAllowed,
    check_endpoint,
    check_folder,
    place_of,
)
from controlplane.wire.network.secrets import secret_names_fault
from controlplane.wire.schema import StreamSchema
from controlplane.wire.topics.base import BadSource, StreamSource, metadata_faults

_MOST_PARTITIONS: Final = 64
_LONGEST: Final = 1_000
_MOST_SETTLE_S: Final = 3600
# The secret of an object store: access key and secret key, "access:secret".
STORE_SECRET: Final = "store"  # noqa: S105 - no secret, but what it is for


class FileFormat(StrEnum):
    """The formats of files: lines of JSON, lines of CSV, or Parquet."""

    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


class FileMetadata(StrEnum):
    """What of a row besides its values a column can have."""

    FILE = "file"
    ROW = "row"
    MODIFIED = "modified"


_TYPES: Final = MappingProxyType({
    FileMetadata.FILE: "string", FileMetadata.ROW: "int64", FileMetadata.MODIFIED: "timestamp(ms)",
})  # fmt: skip


@dataclass(frozen=True, eq=False)
class FileSource(StreamSource):
    """Files of a directory or object store, each read once.

    `url`: file:///… or s3://…; `endpoint`, `region`: of an object store, that of Amazon by default;
    `pattern`: of paths below it, with * and ?; `format`: `FileFormat`.
    `definition`: of CSV the names of the cells, separated by commas; without it the first line of
    each file has them. `metadata`: column by what it has of a row. `secrets`: by `store` the name
    of the secret with the keys of the store. `partitions`: how many files are read at once;
    `settle_s`: how long a file must be unchanged before it is read. Raises `BadSource`.
    """

    kind: ClassVar[str] = "files"
    about: ClassVar[Mapping[str, str]] = MappingProxyType({
        "url": "`file:///…` or `s3://…`, in the list of destinations of the site",
        "pattern": "of paths below the URL, with * and ?",
        "format": "`json` (lines), `csv` or `parquet`",
        "definition": "of CSV the names of the cells; empty: the first line has them",
        "metadata": "by column: `file`, `row` or `modified`",
        "secrets": "by `store`: the name of the secret with the keys of the store",
        "endpoint": "of `s3://…`: `https://host:port` of a store other than Amazon's",
        "region": "of `s3://…`, such as `eu-central-1`",
        "partitions": "files that are read at once",
        "settle_s": "seconds that a file must be unchanged before it is read",
    })  # fmt: skip

    url: str
    pattern: str = "*"
    format: str = FileFormat.JSON
    definition: str = ""
    metadata: dict[str, str] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    endpoint: str = ""
    region: str = ""
    partitions: int = 1
    settle_s: float = 2.0

    def __post_init__(self) -> None:
        if faults := {name: why for name, why in _faults(self) if why}:
            raise BadSource(faults)

    @property
    def identity(self) -> str:
        """Return what makes offsets of two declarations offsets of the same rows."""
        place = f"{self.endpoint} {self.url}/{self.pattern}"
        return f"{place} {self.format} {self.definition} {self.partitions}"

    @property
    def place(self) -> str:
        """Return what is read."""
        return f"files {self.pattern} in {self.url}"

    def faults_with_schema(self, schema: StreamSchema) -> dict[str, str]:
        """Return by field why rows cannot be records of a schema."""
        faults = metadata_faults(self.metadata, schema, _TYPES)
        if not schema.event_time:
            text = "files need one: a column, or one with the time of the file's modification"
            faults["event_time"] = text
        return faults

    def refusals(self) -> dict[str, str]:
        """Return that the list of the site does not have the directory, or the endpoint."""
        result = {}
        for name, check in (("url", check_folder), ("endpoint", check_endpoint)):
            try:
                check(getattr(self, name))
            except NotAllowed as refusal:
                result[name] = str(refusal)
        return result


def _faults(source: FileSource) -> Iterable[tuple[str, str]]:
    is_url = source.url.startswith(("file:///", "s3://")) and len(source.url) <= _LONGEST
    yield "url", "" if is_url else "must be file:///directory or s3://bucket/directory"
    is_pattern = 0 < len(source.pattern) <= _LONGEST and ".." not in source.pattern
    yield "pattern", "" if is_pattern else "must be a pattern of names, such as *.json"
    formats = list(FileFormat)
    yield "format", "" if source.format in formats else f"must be {' or '.join(formats)}"
    is_short = len(source.definition) <= 64 * _LONGEST
    yield "definition", "" if is_short else "is too long"
    kinds = list(FileMetadata)
    wrong = [kind for kind in source.metadata.values() if kind not in kinds]
    yield "metadata", f"must be {' or '.join(kinds)}" if wrong else ""
    is_known = source.secrets.keys() <= {STORE_SECRET}
    yield "secrets", "" if is_known else f"the only secret is that of the {STORE_SECRET}"
    yield "secrets", secret_names_fault(source.secrets)
    yield "endpoint", "" if _is_endpoint(source.endpoint) else "must be https://host:port"
    is_region = re.fullmatch(r"[a-z0-9-]{0,60}", source.region) is not None
    yield "region", "" if is_region else "must be a name such as eu-central-1"
    is_count = isinstance(source.partitions, int) and 1 <= source.partitions <= _MOST_PARTITIONS
    yield "partitions", "" if is_count else f"must be 1 to {_MOST_PARTITIONS}"
    is_time = isinstance(source.settle_s, int | float) and 0 <= source.settle_s <= _MOST_SETTLE_S
    yield "settle_s", "" if is_time else f"must be 0 to {_MOST_SETTLE_S} s"


def _is_endpoint(endpoint: str) -> bool:
    """Return whether this is the address of a store, "" for none."""
    if re.fullmatch(r"(https?://[A-Za-z0-9.\[\]:_-]{1,300})?", endpoint) is None:
        return False
    try:
        return not endpoint or bool(place_of(endpoint))
    except ValueError:
        return False
