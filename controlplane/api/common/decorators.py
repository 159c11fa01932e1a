"""Decorators of all endpoints: ETags of GET, and the header Idempotency-Key of POST.

A GET with If-None-Match returns 304 if nothing has changed. A repeated POST with a key has one
effect and returns the same response.
"""

import hashlib
import json
import re
from collections.abc import Callable
from functools import wraps
from http import HTTPStatus
from typing import Any, Final

from django.contrib.auth.models import User
from django.core.exceptions import RequestDataTooBig
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import get_conditional_response, patch_vary_headers

from controlplane.access.roles import Actor
from controlplane.api.common.problems import problem
from controlplane.api.common.security import identified
from controlplane.clusters.listing import visible_cluster
from controlplane.errors import Conflict, Invalid, NotFound
from controlplane.integrations import idempotency
from controlplane.integrations.idempotency import Claim
from controlplane.models import KeptAnswer

View = Callable[..., HttpResponseBase]


def conditional(run: View) -> View:
    """Add an ETag to responses to GET, and return 304 if If-None-Match has it."""

    @wraps(run)
    def answered(request: HttpRequest, *args: Any, **parts: Any) -> HttpResponseBase:
        response = run(request, *args, **parts)
        if request.method != "GET" or not isinstance(response, HttpResponse):
            return response
        # Responses depend on the caller. No cache stores them (logins.middleware): an ETag is for
        # scripts, which keep it themselves.
        patch_vary_headers(response, ("Authorization", "Cookie"))
        if response.status_code != HTTPStatus.OK:
            return response
        # The digest identifies a body and protects no secret: blake2b is the fastest strong hash.
        etag = f'"{hashlib.blake2b(response.content, digest_size=16).hexdigest()}"'
        response["ETag"] = etag
        return get_conditional_response(request, etag=etag, response=response) or response

    return answered


HEADER: Final = "Idempotency-Key"
REPLAYED: Final = "Idempotent-Replayed"
_KEY: Final = re.compile(r"[\x21-\x7e]{1,200}")
# Statuses after which a caller retries, so their responses are not stored.
_PASSING: Final = frozenset({401, 403, 409, 429})
# Seconds after which a caller retries while the first request still runs.
_AGAIN_S: Final = 1


def idempotent(run: View) -> View:
    """Execute a POST with a key once; a repeated POST returns the stored response."""

    @wraps(run)
    def answered(request: HttpRequest, *args: Any, **parts: Any) -> HttpResponseBase:
        key = request.headers.get(HEADER)
        if key is None or request.method != "POST":
            return run(request, *args, **parts)
        return _once(request, key, lambda: run(request, *args, **parts))

    return answered


def _once(request: HttpRequest, key: str, work: Callable[[], HttpResponseBase]) -> HttpResponseBase:
    try:
        claim = _claim(request, key)
    except (Conflict, Invalid) as refusal:
        return _refused(request, refusal)
    except RequestDataTooBig:
        claim = None
    if claim is None:
        # An anonymous caller, one without access, or a body that is too large: the request is
        # rejected as without a key.
        return work()
    return _repeated(claim) if isinstance(claim, KeptAnswer) else _done(request, claim, work)


def _claim(request: HttpRequest, key: str) -> Claim | KeptAnswer | None:
    """Return the claim or the stored response, None for an anonymous caller."""
    if not _KEY.fullmatch(key):
        raise Invalid({HEADER: ["Must be 1 to 200 visible ASCII characters, such as a UUID"]})
    actor = identified(request)
    if actor is None or not isinstance(actor.user, User) or not _may_view(request, actor):
        return None
    line = f"{request.method} {request.get_full_path()} {request.content_type} {actor.token or ''}"
    fingerprint = idempotency.fingerprint(line.encode(), request.body)
    return idempotency.claim(actor.user, key, fingerprint)


def _may_view(request: HttpRequest, actor: Actor) -> bool:
    """Return False if access has ended: a stored response is not for former viewers."""
    named = request.resolver_match.kwargs.get("slug") if request.resolver_match else None
    if named is None:
        return actor.is_member
    try:
        visible_cluster(actor, named)
    except NotFound:
        return False
    return True


def _done(
    request: HttpRequest, claimed: Claim, work: Callable[[], HttpResponseBase]
) -> HttpResponseBase:
    kept = False
    try:
        with transaction.atomic():
            response = work()
            status = response.status_code
            if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
                transaction.set_rollback(True)
            elif isinstance(response, HttpResponse) and status not in _PASSING:
                stored = _without_secret(request, response)
                content_type = stored.get("Content-Type", "")
                idempotency.store_answer(claimed, stored.status_code, content_type, stored.content)
                kept = True
    except Conflict as lost:
        return _refused(request, lost)
    except BaseException:
        idempotency.release(claimed)
        raise
    if not kept:
        idempotency.release(claimed)
    return response


def _without_secret(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """Return the response to store: a refusal with the other values if there is a secret."""
    if not getattr(request, "shows_secret", False):
        return response
    values = json.loads(response.content)
    del values["secret"]
    text = (
        "The request succeeded, and only its first response had the secret. If you do not have"
        " it, replace what `data` names"
    )
    return problem(request, 409, "Not now", text, code="secret_not_repeated", data=values)


def _repeated(kept: KeptAnswer) -> HttpResponse:
    body = idempotency.body_of(kept)
    response = HttpResponse(body, status=kept.status, content_type=kept.content_type)
    response[REPLAYED] = "true"
    return response


def _refused(request: HttpRequest, refusal: Conflict | Invalid) -> HttpResponse:
    if isinstance(refusal, Invalid) or refusal.code == "key_reused":
        messages = refusal.fields[HEADER] if isinstance(refusal, Invalid) else [str(refusal)]
        code = "invalid" if isinstance(refusal, Invalid) else refusal.code
        title = "Some values are not valid"
        return problem(request, 422, title, messages[0], code=code, fields={HEADER: messages})
    response = problem(request, 409, "Not now", str(refusal), code=refusal.code, data=refusal.data)
    response["Retry-After"] = str(_AGAIN_S)
    return response
