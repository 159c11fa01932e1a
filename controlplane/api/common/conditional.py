"""Conditional requests: responses to GET have an ETag, and If-None-Match returns 304."""

import hashlib
from collections.abc import Callable
from functools import wraps
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import get_conditional_response, patch_vary_headers

View = Callable[..., HttpResponseBase]


def conditional(run: View) -> View:
    """Add an ETag to responses to GET, and return 304 if If-None-Match has it."""

    @wraps(run)
    def answered(request: HttpRequest, *args: Any, **parts: Any) -> HttpResponseBase:
        response = run(request, *args, **parts)
        if request.method != "GET" or not isinstance(response, HttpResponse):
            return response
        # What one may see is not another's: no shared cache keeps it, and a browser asks again.
        response["Cache-Control"] = "private, no-cache"
        patch_vary_headers(response, ("Authorization", "Cookie"))
        if response.status_code != HTTPStatus.OK:
            return response
        # A digest that names a body, nothing secret: the fastest of the strong ones.
        etag = f'"{hashlib.blake2b(response.content, digest_size=16).hexdigest()}"'
        response["ETag"] = etag
        return get_conditional_response(request, etag=etag, response=response) or response

    return answered
