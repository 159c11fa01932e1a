"""A registry of schemas: a real HTTP server with the one request of Confluent's that sinks send."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


@dataclass
class SchemaRegistry:
    """Where it listens; the schemas by their subject and text, whose places are their ids."""

    url: str = ""
    schemas: list[tuple[str, str]] = field(default_factory=list)
    logins: set[str] = field(default_factory=set)

    def schema(self, number: int) -> Any:
        """Return the schema of an id."""
        return json.loads(self.schemas[number - 1][1])


@contextmanager
def running_registry() -> Iterator[SchemaRegistry]:
    """Yield a registry on this machine."""
    registry = SchemaRegistry()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            _, subjects, subject, versions = self.path.split("/")
            assert (subjects, versions, body["schemaType"]) == ("subjects", "versions", "AVRO")
            registry.logins.add(self.headers.get("Authorization", ""))
            entry = subject, body["schema"]
            if entry not in registry.schemas:
                registry.schemas.append(entry)
            answer = json.dumps({"id": registry.schemas.index(entry) + 1}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        registry.url = f"http://127.0.0.1:{server.server_port}"
        yield registry
        server.shutdown()
        thread.join()
