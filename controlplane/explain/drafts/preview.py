"""Previews of queries: a worker evaluates a query on the newest records of its streams.

Nothing is stored and nothing is placed. A user has one preview on a cluster: a newer request, or
`cancel`, ends the one before.
"""

import time
from dataclasses import replace
from functools import lru_cache
from typing import Final
from uuid import uuid4

import redis
from django.conf import settings

from controlplane.access.roles import Actor, require_operator
from controlplane.connections import redis_client
from controlplane.errors import Away, Conflict
from controlplane.events.task_names import PREVIEW_QUERY, send_on_commit
from controlplane.explain.drafts.values import (
    REQUEST,
    RESPONSE,
    BrowseRequest,
    Preview,
    PreviewRequest,
    PreviewResponse,
)
from controlplane.models import Cluster
from controlplane.queries.spec import QuerySpec
from controlplane.topology import queries
from controlplane.wire import keys
from controlplane.wire.redis_clients import connect

# How long a request waits for a worker: its limit of time, and some for the queue.
WAIT_S: Final = 9.0
# A worker skips requests that nobody waits for any more.
KEPT_S: Final = 30
_RETRY_S: Final = 5
# Requests for which a user waits.
UserRequest = PreviewRequest | BrowseRequest


def preview(actor: Actor, cluster: Cluster, spec: QuerySpec) -> Preview:
    """Return the windows of a query over the newest records of its streams; changes nothing.

    Raises `Forbidden`, `Invalid` by field, `Conflict` no_records, query_failed, cancelled,
    out_of_memory or out_of_time, and `Away` preview_away, log_away.
    """
    require_operator(actor, cluster)
    started = time.monotonic()
    query = queries.resolved(cluster, spec)
    request = PreviewRequest(
        cluster.pk, query.text.to_text(), query.left, actor.name, token=uuid4().hex
    )
    response = answered(cluster, request, PREVIEW_QUERY, REQUEST.dump_json(request).decode())
    if response.preview is None:
        raise refusal_of(response)
    return replace(response.preview, took_ms=round(1000 * (time.monotonic() - started)))


def cancel(actor: Actor, cluster: Cluster) -> None:
    """Cancel the preview that the actor waits for, if there is one. Raises `Forbidden`."""
    require_operator(actor, cluster)
    _supersede(cluster, actor.name, "")


def is_wanted(cluster: Cluster, request: UserRequest) -> bool:
    """Return whether a request is the newest of its user on the cluster."""
    token = redis_client().hget(keys.previews_key(cluster.slug), request.user)
    return token == request.token.encode()


def answer(cluster: Cluster, request: UserRequest, response: PreviewResponse) -> None:
    """Send the response of a worker to the process that waits for it."""
    key = keys.preview_key(cluster.slug, request.token)
    pipe = redis_client().pipeline(transaction=True)
    pipe.rpush(key, RESPONSE.dump_json(response))
    pipe.expire(key, KEPT_S)
    pipe.execute()


def answered(cluster: Cluster, request: UserRequest, task: str, body: str) -> PreviewResponse:
    """Send a request to the workers as a task and return the response. Raises `Away`."""
    _supersede(cluster, request.user, request.token)
    send_on_commit(task, body, expires_s=WAIT_S)
    reply = _waiting_client(settings.REDIS_URL).blpop(
        [keys.preview_key(cluster.slug, request.token)], WAIT_S
    )
    if reply is None:
        text = "No worker answered in time: all are busy, or none runs"
        raise Away("preview_away", text, _RETRY_S)
    return RESPONSE.validate_json(reply[1])


def _supersede(cluster: Cluster, user: str, token: str) -> None:
    """Make a token the newest of a user; the request that waits with another one is cancelled."""
    key = keys.previews_key(cluster.slug)
    pipe = redis_client().pipeline(transaction=True)
    pipe.hget(key, user)
    pipe.hset(key, user, token)
    pipe.expire(key, KEPT_S)
    before = pipe.execute()[0]
    if before:
        earlier = PreviewRequest(cluster.pk, "", (), user, before.decode())
        answer(cluster, earlier, PreviewResponse(code="cancelled", text="The preview is cancelled"))


def refusal_of(response: PreviewResponse) -> Exception:
    """Return the error of a response."""
    if response.code == "log_away":
        return Away(response.code, response.text, _RETRY_S, response.data)
    return Conflict(response.code, response.text, response.data)


@lru_cache(maxsize=2)
def _waiting_client(url: str) -> redis.Redis:
    return connect(url, block_s=WAIT_S)
