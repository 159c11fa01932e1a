"""How the first records of a stream are sent: a command with an example, and the kept sample."""

import json
import shlex
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from controlplane.catalog.computations import schema_of
from controlplane.models import Stream
from controlplane.records.bodies import Format
from controlplane.records.examples import example_record
from controlplane.records.kept_samples import sample_of
from dashboard.guards import PageRequest


def sending_context(request: PageRequest, stream: Stream, secret: str = "") -> dict[str, Any]:
    """Return how the first records are sent: a command with an example, and the kept sample."""
    schema = schema_of(stream.schema)
    if schema is None:
        return {}
    return {
        "formats": list(Format),
        "command": _command(request, stream, secret, example_record(schema, timezone.now())),
        "kept_sample": sample_of(request.actor, stream),
        "most_mib": settings.MAX_REQUEST_BYTES // 2**20 - 1,
        "secret": secret,
    }


def _command(request: HttpRequest, stream: Stream, secret: str, record: dict[str, Any]) -> str:
    """Return a shell command that appends a record; without a secret it reads $TOKEN."""
    parts = {"slug": stream.cluster.slug, "stream": stream.name}
    url = request.build_absolute_uri(reverse("api:append_records", kwargs=parts))
    body = json.dumps({"records": [record]}, ensure_ascii=False)
    return " \\\n  ".join(
        [
            f"curl -X POST {shlex.quote(url)}",
            f'-H "Authorization: Bearer {secret or "$TOKEN"}"',
            '-H "Content-Type: application/json"',
            f"-d {shlex.quote(body)}",
        ]
    )
