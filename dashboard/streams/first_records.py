"""Appends to a stream from its page: a token for a command, a file, or the kept sample."""

from typing import Final

from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.cache import never_cache

from controlplane.access import tokens
from controlplane.access.roles import PRODUCER
from controlplane.catalog.streams import stream_by_id
from controlplane.models import Cluster
from controlplane.numbers import counted
from controlplane.records.append import AppendResult
from controlplane.records.kept_samples import append_sample
from controlplane.records.requests import OnBad, append_body
from dashboard.guards import PageRequest, cluster_action
from dashboard.responses import cluster_change, notify_refusals
from dashboard.streams.detail import stream_page
from dashboard.streams.schema_forms import uploaded_file

# A token for a first look: producers that stay have one of their own.
_DAYS: Final = 1


@never_cache
@cluster_action
def make_token(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponse:
    """Make a token of a producer for a day, and show the command with it."""
    stream = stream_by_id(cluster, pk).stream
    with notify_refusals(request):
        name = f"first records of {stream.name}"
        _, secret = tokens.make(request.actor, name[: tokens.MAX_NAME], PRODUCER, cluster, _DAYS)
        return stream_page(request, cluster, pk, secret)
    return redirect("stream", cluster.slug, pk)


@cluster_change("stream", "pk")
def append_file(request: PageRequest, cluster: Cluster, pk: int) -> str:
    """Append an uploaded file; records that do not fit become dead letters."""
    stream, named = stream_by_id(cluster, pk).stream, request.POST.get("format", "")
    file, kind = uploaded_file(request.FILES.get("records"), named, "records")
    body = file.read()
    return _result_text(append_body(request.actor, stream, body, kind, on_bad=OnBad.DEAD_LETTER))


@cluster_change("stream", "pk")
def append_kept(request: PageRequest, cluster: Cluster, pk: int) -> str:
    """Append the sample from which the user has declared the stream."""
    return _result_text(append_sample(request.actor, stream_by_id(cluster, pk).stream))


def _result_text(done: AppendResult) -> str:
    """Return what became of the records of a file."""
    parts = [f"{counted(done.records, 'records')} appended"]
    if done.dead_letters:
        parts.append(f"{counted(done.dead_letters, 'records')} did not fit: see Dead letters")
    if done.late:
        parts.append(f"{counted(done.late, 'records')} late by the watermark delay")
    return f"{'; '.join(parts)}."
