"""Parts of a cluster description about other systems: topics that streams read, and sinks."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class DocumentPart(BaseModel):
    """A part of a description: no unknown names, no value of another type than it should have."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, allow_inf_nan=False, populate_by_name=True
    )


class SourcePart(DocumentPart):
    """A topic that is read in place; secrets are names that only the site knows."""

    servers: str = Field(max_length=1000, description="`host:port,…` of the brokers")
    topic: str = Field(max_length=249)
    format: str = Field("json", description="`json`, `csv`, `avro`, `protobuf` or `string`")
    start: str = Field("earliest", description="`earliest`, `latest` or a time with a zone")
    offsets: dict[str, int] = Field(
        default_factory=dict, description="by partition: where it starts instead"
    )
    metadata: dict[str, str] = Field(
        default_factory=dict,
        description="by column: `timestamp`, `partition`, `offset`, `key` or `operation`",
    )
    group: str = Field("", description="consumer group; empty: `weir-<cluster>-<stream id>`")
    on_loss: str = Field("stop", description="if unread messages are gone: `stop` or `skip`")
    options: dict[str, str] = Field(default_factory=dict, description="settings of the client")
    secrets: dict[str, str] = Field(
        default_factory=dict, description="by setting of the client: the name of a secret"
    )
    registry: str = Field("", description="URL of a schema registry")
    definition: str = Field("", description="the schema of messages without a registry")
    message: str = Field("", description="the type of messages of Protobuf in the definition")
    envelope: str = Field("none", description="`none` or `debezium`")
    updates: str = Field("record", description="of an envelope: `record` or `skip`")
    deletes: str = Field("skip", description="of an envelope: `record` or `skip`")
    produce: str = Field("", description="the role that may write messages; empty: nobody")


class SinkPart(DocumentPart):
    """A sink of a query."""

    query: str
    name: str = Field(max_length=60, description="lower-case letters, digits and hyphens")
    kind: str = Field(max_length=20, description="such as `postgres`: docs/sinks.md")
    settings: dict[str, Any] = Field(default_factory=dict, description="of its kind")
    mode: Literal["final_only", "every_change"] = "final_only"
    corrections: Literal["update", "count"] = Field(
        "update", description="of results that were written as final"
    )
    paused: bool = False
