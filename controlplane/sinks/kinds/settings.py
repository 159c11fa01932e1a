"""The settings of each kind of sinks; the fields of forms and their hints derive from them."""

import re
from collections.abc import Mapping
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from controlplane.sinks.destination import Secret, SinkSettings
from controlplane.wire.network.destinations import place_of

_TABLE: Final = re.compile(r"([^\W\d]\w{0,62}\.)?[^\W\d]\w{0,62}")


def _table(name: str) -> str:
    if not _TABLE.fullmatch(name):
        raise ValueError("must be a table or schema.table: letters, digits and _")
    return name


def _namespaced(name: str) -> str:
    if "." not in _table(name):
        raise ValueError("must be namespace.table")
    return name


class PostgresSettings(SinkSettings):
    """A table of another database, which is created if it does not exist."""

    host: str = Field(min_length=1, max_length=200, title="Host")
    port: int = Field(5432, ge=1, le=65_535, title="Port")
    database: str = Field(min_length=1, max_length=63, title="Database")
    user: str = Field(min_length=1, max_length=63, title="User")
    secret: Secret = Field("", title="Secret", description="name of the secret with the password")
    tls: Literal["verify-full", "require", "disable"] = Field("verify-full", title="TLS")
    table: Annotated[str, AfterValidator(_table)] = Field(
        title="Table", description="schema.table; created if it does not exist"
    )
    columns: Mapping[str, str] = Field(
        default_factory=dict, title="Columns", max_length=200,
        description="of an existing table by those of the results; others are not written",
    )  # fmt: skip


class FileSettings(SinkSettings):
    """What kinds of files have in common: the object store, and for how long they collect."""

    secret: Secret = Field(
        "", title="Secret", description="of s3: name of the secret access-key:secret-key"
    )
    endpoint: str = Field(
        "", max_length=300, title="Endpoint", pattern=r"^(https?://[A-Za-z0-9.\[\]:_-]+)?$",
        description="of s3: https://host:port of a store other than Amazon's",
    )  # fmt: skip
    region: str = Field(
        "", max_length=60, title="Region", pattern=r"^[a-z0-9-]*$",
        description="of s3, such as eu-central-1",
    )  # fmt: skip
    every_s: int = Field(
        60, ge=1, le=86_400, title="Write every", description="seconds; earlier if many wait"
    )

    @field_validator("endpoint")
    @classmethod
    def _has_port(cls, endpoint: str) -> str:
        if endpoint:
            # Raises ValueError for a port that is none.
            place_of(endpoint)
        return endpoint

    @property
    def is_remote(self) -> bool:
        """Return whether the files are in an object store."""
        return any(str(value).startswith("s3:") for value in self.model_dump().values())


class _Directory(SinkSettings):
    """The first field of folders."""

    url: str = Field(
        min_length=1, max_length=500, title="Directory",
        description="file:///path or s3://bucket/path",
    )  # fmt: skip


class FolderSettings(FileSettings, _Directory):
    """A directory or an object store."""


class ResultStreamSettings(SinkSettings):
    """A stream of the same cluster."""

    stream: str = Field(
        min_length=1, max_length=100, title="Stream",
        description="declared with the columns of the results if it does not exist",
    )  # fmt: skip


class ParquetSettings(FolderSettings):
    """Parquet files, in a folder for each day of window starts."""


class DeltaSettings(FolderSettings):
    """A Delta table, partitioned by the day of window starts; created if it does not exist."""


class _Catalog(SinkSettings):
    """The first fields of Iceberg: the catalog, and the table in it."""

    type: Literal["rest", "sql"] = Field("rest", title="Catalog")
    uri: str = Field(
        min_length=1, max_length=500, title="URI", pattern=r"^(https?|postgresql\+psycopg|sqlite)://",
        description="https://host/path; of sql postgresql+psycopg://user@host/database, sqlite:///path",
    )  # fmt: skip
    warehouse: str = Field(
        "", max_length=500, title="Warehouse", description="s3://bucket/path or file:///path"
    )
    table: Annotated[str, AfterValidator(_namespaced)] = Field(
        title="Table", description="namespace.table"
    )
    catalog_secret: Secret = Field(
        "", title="Secret of the catalog",
        description="name of the secret client:secret of rest, or the password of sql",
    )  # fmt: skip

    @field_validator("uri")
    @classmethod
    def _fits(cls, uri: str, info: ValidationInfo) -> str:
        parts = urlsplit(uri)
        if parts.password:
            raise ValueError("must have no password: name a secret")
        if (info.data.get("type") == "rest") != parts.scheme.startswith("http"):
            raise ValueError("must be http of a rest catalog, else a database")
        return uri


class IcebergSettings(FileSettings, _Catalog):
    """An Iceberg table of a catalog; created if it does not exist."""


class HttpSettings(SinkSettings):
    """A URL that receives batches of results as JSON, signed as webhooks are."""

    url: str = Field(min_length=1, max_length=500, title="URL")
    secret: Secret = Field(
        min_length=1, title="Secret", description="name of the secret that signs the requests"
    )
    batch: int = Field(500, ge=1, le=500, title="Results per request")


class KafkaSettings(SinkSettings):
    """A topic of a Kafka cluster; a message has the key of its result as JSON."""

    servers: str = Field(
        min_length=1, max_length=500, title="Servers", description="host:port, several with commas"
    )
    # The topic of positions has a longer name.
    topic: str = Field(min_length=1, max_length=200, title="Topic", description="an existing one")
    format: Literal["json", "avro", "protobuf"] = Field("json", title="Format")
    registry: str = Field(
        "", max_length=400, title="Registry", validate_default=True,
        description="URL of a registry of schemas, for avro; protobuf needs one",
    )  # fmt: skip
    options: Mapping[str, str] = Field(
        default_factory=dict, title="Options", max_length=20,
        description="of the client, such as security.protocol=SASL_SSL, sasl.username=weir",
    )  # fmt: skip
    secrets: Mapping[str, Secret] = Field(
        default_factory=dict, title="Secrets", max_length=20,
        description="name of the secret by option, such as sasl.password=shop-kafka; "
        "of the registry: registry=shop-registry, user:password",
    )  # fmt: skip

    @field_validator("registry")
    @classmethod
    def _fits(cls, registry: str, info: ValidationInfo) -> str:
        if info.data.get("format") == "protobuf" and not registry:
            raise ValueError("must be given for protobuf: it keeps the numbers of the fields")
        return registry
