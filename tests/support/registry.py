"""A schema registry for tests: a real HTTP server that speaks the registry's REST protocol.

It keeps schemas in memory, by identifier and by version of a subject. For Protobuf it has, as
Confluent's, the serialized descriptor of a file for `format=serialized`. It checks no
compatibility.
"""

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit


@dataclass
class Registry:
    """The registry; `requests`: the paths that were asked for; `is_away`: it answers 503.

    `refusal`: why it refuses new schemas; `padding`: bytes behind each answer.
    """

    login: str = ""
    url: str = ""
    is_away: bool = False
    refusal: str = ""
    padding: int = 0
    requests: list[str] = field(default_factory=list)
    _schemas: dict[int, dict[str, Any]] = field(default_factory=dict)
    _subjects: dict[str, list[int]] = field(default_factory=dict)

    def add(
        self, subject: str, text: str, kind: str = "AVRO", references: list[Any] | None = None
    ) -> int:
        """Register a schema as a new version of a subject; return its identifier.

        A schema that the subject has keeps its identifier.
        """
        row = {"schema": text, "schemaType": kind, "references": references or []}
        for number in self._subjects.get(subject, ()):
            if self._schemas[number] == row:
                return number
        number = len(self._schemas) + 1
        self._schemas[number] = row
        self._subjects.setdefault(subject, []).append(number)
        return number

    def schemas(self, subject: str) -> list[str]:
        """Return the texts of the versions of a subject."""
        return [self._schemas[number]["schema"] for number in self._subjects.get(subject, ())]

    def register(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        """Return the status and the body of a POST."""
        _, subjects, subject, versions = path.split("/")
        assert (subjects, versions) == ("subjects", "versions")
        if self.is_away or self.refusal:
            status = 503 if self.is_away else 409
            return status, {"error_code": status, "message": self.refusal}
        kind = body.get("schemaType", "AVRO")
        return 200, {"id": self.add(unquote(subject), body["schema"], kind, body["references"])}

    def answer(self, path: str) -> tuple[int, Any]:
        """Return the status and the body of a GET."""
        parts = [unquote(part) for part in path.strip("/").split("/")]
        if self.is_away:
            return 503, {"error_code": 50301, "message": "away"}
        match parts:
            case ["schemas", "ids", text] if int(text) in self._schemas:
                return 200, self._schemas[int(text)]
            case ["subjects", subject, "versions", version] if subject in self._subjects:
                numbers = self._subjects[subject]
                place = len(numbers) if version == "latest" else int(version)
                if place <= len(numbers):
                    number = numbers[place - 1]
                    found = {"subject": subject, "version": place, "id": number}
                    return 200, found | self._schemas[number]
        return 404, {"error_code": 40403, "message": "not found"}


class _Handler(BaseHTTPRequestHandler):
    """Answers requests of the registry of its server."""

    server: "_Server"

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        status, body = self.server.registry.answer(parts.path)
        if status == 200 and body["schemaType"] == "PROTOBUF":
            assert parse_qs(parts.query)["format"] == ["serialized"]
        self._respond(status, body)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        registry, path = self.server.registry, urlsplit(self.path).path
        self._respond(*(registry.register(path, body) if self._is_known() else (401, {})))

    def log_message(self, *_: Any) -> None:
        """Print nothing."""

    def _is_known(self) -> bool:
        login = self.server.registry.login
        wanted = f"Basic {base64.b64encode(login.encode()).decode()}"
        return not login or self.headers.get("Authorization") == wanted

    def _respond(self, status: int, body: Any) -> None:
        registry = self.server.registry
        registry.requests.append(self.path)
        if not self._is_known():
            status, body = 401, {"error_code": 401, "message": "who are you"}
        data = json.dumps(body).encode() + b" " * registry.padding
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class _Server(ThreadingHTTPServer):
    def __init__(self, registry: Registry) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.registry = registry


@contextmanager
def running_registry(login: str = "") -> Iterator[Registry]:
    """Yield a registry on a port of its own; `login`: "user:password" that it requires."""
    registry = Registry(login)
    with _Server(registry) as server:
        registry.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield registry
        server.shutdown()
        thread.join()
