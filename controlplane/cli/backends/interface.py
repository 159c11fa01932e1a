"""The interface of both ways to call the API."""

import json
from abc import ABC, abstractmethod
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from http import HTTPStatus
from string import Formatter
from typing import Any, Final
from urllib.parse import quote, urlencode

from controlplane.cli.backends.problems import refused_by_answer
from controlplane.cli.codes import Code, Refused

ROOT: Final = "/api/v1"
JSON: Final = "application/json"


@dataclass(frozen=True)
class Answer:
    """A response: its status, its text, and its content type."""

    status: int
    text: str
    content_type: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def value(self) -> Any:
        """Return the JSON value of the body, None of an empty body. Raises `ValueError`."""
        return json.loads(self.text) if self.text else None


@dataclass(frozen=True)
class Call:
    """A request: the path below /api/v1 with its query string, and the body."""

    method: str
    path: str
    body: bytes = b""
    content_type: str = JSON

    @property
    def is_read(self) -> bool:
        """Return True if the call changes nothing."""
        return self.method == "GET"


class Api(ABC):
    """The API of a Weir, called by one user."""

    @abstractmethod
    def send(self, call: Call) -> Answer:
        """Return the response to a call, whatever its status. Raises `Refused` without one."""

    def request(
        self, method: str, path: str, query: Mapping[str, Any] | None = None, body: Any = None
    ) -> Any:
        """Return the JSON of a response. Raises `Refused` for an error."""
        try:
            data = b"" if body is None else json.dumps(body, default=_plain).encode()
        except (TypeError, ValueError, RecursionError) as wrong:
            # YAML has names of any type, and aliases of what they are in.
            raise Refused(Code.WRONG, f"JSON cannot express the values: {wrong}") from None
        return self.answer(method, path, query, data).value

    def answer(
        self, method: str, path: str, query: Mapping[str, Any] | None = None, body: bytes = b"",
        content_type: str = JSON,
    ) -> Answer:  # fmt: skip
        """Return a response whose status is no error. Raises `Refused` for an error."""
        call = Call(method, path + query_string(query or {}), body, content_type)
        answer = self.send(call)
        if answer.status >= HTTPStatus.MULTIPLE_CHOICES:
            raise refused_by_answer(call.path, answer.status, answer.text)
        return answer

    def get(self, path: str, **query: Any) -> Any:
        """Return the JSON of a GET. Raises `Refused` for an error."""
        return self.request("GET", path, query)

    def post(self, path: str, **body: Any) -> Any:
        """Return the JSON of a POST. Raises `Refused` for an error."""
        return self.request("POST", path, body=body)


def _plain(value: Any) -> Any:
    """Return a value of options or of YAML as one that JSON has."""
    if isinstance(value, date):
        return value.isoformat()
    return dict(value) if isinstance(value, Mapping) else list(value)


def query_string(values: Mapping[str, Any]) -> str:
    """Return the query string of values, without those that are None."""
    present = {name: _written(value) for name, value in values.items() if value is not None}
    return f"?{urlencode(present)}" if present else ""


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def path_of(template: str, values: Mapping[str, Any]) -> str:
    """Return a path with its parameters in braces replaced by values.

    Raises `Refused` for one that would be none, or several, of the parts of a path.
    """
    names = [name for _, name, _, _ in Formatter().parse(template) if name]
    for name in names:
        text = str(values[name])
        if not text.strip(".") or "/" in text or text.startswith("-"):
            raise Refused(Code.NOT_FOUND, f"There is no {name} {text!r}")
    return template.format_map({name: quote(str(values[name]), safe="") for name in names})


def cluster_path(given: Namespace) -> str:
    """Return the path of the cluster that a call names."""
    return path_of("/clusters/{cluster}", vars(given))


def stream_path(given: Namespace) -> str:
    """Return the path of the stream, by name or id, that a call names."""
    return path_of("/clusters/{cluster}/streams/{stream}", vars(given))
