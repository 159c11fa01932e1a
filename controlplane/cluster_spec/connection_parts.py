"""Parts of a cluster description about other systems: sources of streams, and sinks."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from controlplane.topology.topics.declaration import source_body


class DocumentPart(BaseModel):
    """A part of a description: no unknown names, no value of another type than it should have."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, allow_inf_nan=False, populate_by_name=True
    )


class SourcePart(source_body(DocumentPart)):  # type: ignore[misc]
    """A topic, files or a generator that is read in place; secrets are names of the site's."""


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
