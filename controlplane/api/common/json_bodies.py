"""The parser of JSON bodies: within bounds, strict."""

from typing import Any

from django.http import HttpRequest
from ninja.parser import Parser

from algorithms.strict_json import BadJson, read_bounded
from controlplane.processes.runtime.request_bounds import JSON_BODY


class BoundedParser(Parser):
    """Parses a body as strict JSON within bounds; Ninja answers `BadJson` with 400."""

    def parse_body(self, request: HttpRequest) -> Any:
        """Return the value of a body. Raises `BadJson`."""
        return read_bounded(request.body, JSON_BODY)


def fault_of(error: BaseException) -> BadJson | None:
    """Return why a body was not parsed, None if the error has another cause."""
    cause = error if isinstance(error, BadJson) else error.__cause__
    return cause if isinstance(cause, BadJson) else None
