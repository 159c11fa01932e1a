"""Decorators of all endpoints: ETags of GET, and the header Idempotency-Key of POST.

A GET with If-None-Match returns 304 if nothing has changed. A repeated POST with a key has one
effect and returns the same response.
"""

import hashlib
import inspect
import json
import logging
import re
from collections.abc import Callable
from functools import wraps
from http import HTTPStatus
from typing import Any, Final, cast

from django.contrib.auth.models import User
from django.core.exceptions import RequestDataTooBig
from django.db import OperationalError
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import get_conditional_response, patch_vary_headers
from ninja.operation import Operation

from controlplane.access import idempotency
from controlplane.access.idempotency import KeyClaim
from controlplane.access.roles import Actor
from controlplane.api.common.problems import problem
from controlplane.api.common.security import admitted
from controlplane.errors import Invalid, WeirError
from controlplane.models import KeptAnswer

logger = logging.getLogger(__name__)

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


def idempotent(run: View) -> View:
    """Execute a POST with a key once; a repeated POST returns the stored response."""
    operation = cast("Operation", inspect.unwrap(run).__self__)

    @wraps(run)
    def answered(request: HttpRequest, *args: Any, **parts: Any) -> HttpResponseBase:
        key = request.headers.get(HEADER)
        # The operation refuses those whom it does not admit, before their body is read.
        actor = None if key is None or request.method != "POST" else admitted(request, operation)
        if key is None or actor is None:
            return run(request, *args, **parts)
        try:
            return _once(request, actor, key, lambda: run(request, *args, **parts))
        except (WeirError, RequestDataTooBig, OperationalError) as error:
            return operation.api.on_exception(request, error)

    return answered


def _once(
    request: HttpRequest, actor: Actor, key: str, work: Callable[[], HttpResponseBase]
) -> HttpResponseBase:
    if not _KEY.fullmatch(key):
        raise Invalid({HEADER: ["Must be 1 to 200 visible ASCII characters, such as a UUID"]})
    assert isinstance(actor.user, User)
    line = f"{request.method} {request.get_full_path()} {request.content_type} {actor.token or ''}"
    named = f"{actor.user.pk} {key}"
    fingerprint = idempotency.fingerprint(named.encode(), line.encode(), request.body)
    claim = idempotency.claim(actor.user, key, fingerprint)
    return _repeated(claim) if isinstance(claim, KeptAnswer) else _done(request, claim, work)


def _done(
    request: HttpRequest, claim: KeyClaim, work: Callable[[], HttpResponseBase]
) -> HttpResponseBase:
    response = None
    try:
        with idempotency.running(claim):
            response = work()
    finally:
        try:
            _store(request, claim, response)
        except OperationalError as error:
            # The request is over all the same; the claim ends with its lease.
            logger.warning("The answer to an idempotency key was not stored: %s", error)
    return response


def _store(request: HttpRequest, claim: KeyClaim, response: HttpResponseBase | None) -> None:
    """Store a response that a repetition gets, and release the claim after any other, or none."""
    status = HTTPStatus.INTERNAL_SERVER_ERROR if response is None else response.status_code
    passes = status in _PASSING
    if (
        passes
        or status >= HTTPStatus.INTERNAL_SERVER_ERROR
        or not isinstance(response, HttpResponse)
    ):
        idempotency.release(claim, is_refused=passes)
        return
    stored = _without_secret(request, response)
    content_type = stored.get("Content-Type", "")
    idempotency.store_answer(claim, stored.status_code, content_type, stored.content)


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
