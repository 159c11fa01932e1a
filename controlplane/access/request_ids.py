"""Request ids: in responses, log lines and audit entries."""

import logging
import re
import uuid
from contextvars import ContextVar
from typing import Final

from django.http import HttpRequest

HEADER: Final = "X-Request-ID"
# An id goes into logs and into a column of 40 characters: what a caller sends must be harmless.
_SANE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{7,39}")
_current: ContextVar[str] = ContextVar("weir_request_id", default="")


def chosen_id(given: str) -> str:
    """Return the caller's request id if it is valid, else a new one."""
    return given if _SANE.fullmatch(given) else uuid.uuid4().hex


def request_id(request: HttpRequest) -> str:
    """Return the id of a request, "" where no middleware gave it one."""
    return str(getattr(request, "id", ""))


def begin(identity: str) -> None:
    """Set the request id of this thread's or task's log lines."""
    _current.set(identity)


class WithRequest(logging.Filter):
    """Adds `request_id` to a record: the id in brackets, or nothing outside a request."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every record pass."""
        identity = _current.get()
        record.request_id = f" [{identity}]" if identity else ""
        return True
