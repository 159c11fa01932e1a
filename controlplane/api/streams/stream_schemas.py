"""Endpoints of streams' schemas: read, infer from a sample, change."""

from typing import Any

from django.http import HttpRequest
from ninja import Router

from controlplane.access.roles import VIEWER, require_operator
from controlplane.api.common.bodies import body_of
from controlplane.api.common.schemas import dataclass_schema
from controlplane.api.common.security import caller, cluster_of, open_to
from controlplane.api.streams.records import FORMAT, RECORDS_BODY, format_of
from controlplane.api.streams.schemas import PreviewOut, SchemaBody, SchemaIn, SchemaPatch
from controlplane.catalog.computations import schema_of
from controlplane.catalog.streams import stream_by_key
from controlplane.clusters.audiences import producers
from controlplane.errors import NotFound
from controlplane.records.bodies import Format
from controlplane.topology.schemas.evolution import schema_from
from controlplane.topology.schemas.inference import Inferred, infer
from controlplane.topology.streams import patch_schema, preview, set_schema
from controlplane.wire.schema import ColumnSpec

router = Router(tags=["streams"])


@router.get("/{slug}/streams/{stream}/schema", response=SchemaBody, auth=open_to(producers))
def get_schema(request: HttpRequest, slug: str, stream: str) -> Any:
    """Return the schema of a stream (by id or name); 404 if it has none yet."""
    schema = schema_of(stream_by_key(cluster_of(request), stream).schema)
    if schema is None:
        raise NotFound("schema of stream", stream)
    return schema.to_json()


@router.put("/{slug}/streams/{stream}/schema", response=SchemaBody)
def put_schema(request: HttpRequest, slug: str, stream: str, body: SchemaIn) -> Any:
    """Set the schema of a stream; idempotent.

    While queries read it, a nullable column may be added, a type widened, a column made nullable,
    a column removed that no live query reads, and a setting changed. Anything else is refused with
    409 (schema_incompatible): data.columns names each column, the reason, and the queries that it
    would break.
    """
    actor, schema = caller(request), stream_by_key(cluster_of(request), stream)
    new = schema_from(body.model_dump(exclude={"reason"}))
    return set_schema(actor, schema, new, body.reason).schema


@router.patch("/{slug}/streams/{stream}/schema", response=SchemaBody)
def change_schema(request: HttpRequest, slug: str, stream: str, body: SchemaPatch) -> Any:
    """Change parts of a stream's schema, under the rules of a whole schema."""
    actor, schema = caller(request), stream_by_key(cluster_of(request), stream)
    columns = [ColumnSpec(**column.model_dump()) for column in body.columns]
    settings = body.model_dump(exclude={"columns", "remove", "reason"}, exclude_none=True)
    return patch_schema(actor, schema, columns, body.remove, settings, body.reason).schema


@router.post("/{slug}/streams/{stream}/schema/preview", response=PreviewOut, auth=open_to(VIEWER))
def preview_schema(request: HttpRequest, slug: str, stream: str, body: SchemaIn) -> Any:
    """Return the effect of a change to this schema, without changing it."""
    row = stream_by_key(cluster_of(request), stream)
    changes = preview(row, schema_from(body.model_dump(exclude={"reason"})))
    allowed = not any(change.refusal for change in changes)
    return {"allowed": allowed, "changes": [change.to_json() for change in changes]}


@router.post(
    "/{slug}/streams/infer", response=dataclass_schema(Inferred), openapi_extra=RECORDS_BODY
)
def infer_schema(request: HttpRequest, slug: str, form: Format | None = FORMAT) -> Any:
    """Propose a schema from the first 10,000 records of a sample of at most 4 MiB.

    The content type names its format, as of records that are appended. Nothing is declared:
    confirm or correct the proposal, then register the stream with it.
    """
    actor = caller(request)
    require_operator(actor, cluster_of(request))
    return infer(body_of(request), format_of(request, form))
