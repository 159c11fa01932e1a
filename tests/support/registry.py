"""A schema registry for tests: a real HTTP server that speaks the registry's REST protocol.

It keeps schemas in memory, by identifier and by version of a subject. For Protobuf it has, as
Confluent's, the serialized descriptor of a file for `format=serialized`.
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
    """The registry; `requests`: the paths that were asked for; `is_away`: it answers 503."""

    login: str = ""
    url: str = ""
    is_away: bool = False
    requests: list[str] = field(default_factory=list)
    _schemas: dict[int, dict[str, Any]] = field(default_factory=dict)
    _subjects: dict[str, list[int]] = field(default_factory=dict)

    def add(
        self, subject: str, text: str, kind: str = "AVRO", references: list[Any] | None = None
    ) -> int:
        """Register a schema as a new version of a subject; return its identifier."""
        number = len(self._schemas) + 1
        row = {"schema": text, "schemaType": kind, "references": references or []}
        self._schemas[number] = row
        self._subjects.setdefault(subject, []).append(number)
        return number

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


@contextmanager
def running_registry(login: str = "") -> Iterator[Registry]:
    """Yield a registry on a port of its own; `login`: "user:password" that it requires."""
    registry = Registry(login)
    wanted = f"Basic {base64.b64encode(login.encode()).decode()}"

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            registry.requests.append(self.path)
            status, body = registry.answer(parts.path)
            if login and self.headers.get("Authorization") != wanted:
                status, body = 401, {"error_code": 401, "message": "who are you"}
            if status == 200 and body["schemaType"] == "PROTOBUF":
                assert parse_qs(parts.query)["format"] == ["serialized"]
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        registry.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield registry
        server.shutdown()
        thread.join()
