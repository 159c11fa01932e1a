"""A REST catalog of Iceberg for tests: what a client of tables needs, over a catalog in SQLite."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

from pyiceberg.catalog.rest import CreateTableRequest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.table import CommitTableRequest, Table

CLIENT, SECRET, TOKEN = "weir", "a secret of this test", "a token of this test"
_STATUS = {
    CommitFailedException: 409, NamespaceAlreadyExistsError: 409, TableAlreadyExistsError: 409,
    NoSuchNamespaceError: 404, NoSuchTableError: 404, PermissionError: 401,
}  # fmt: skip


@contextmanager
def running_rest_catalog(folder: Path) -> Iterator[tuple[str, SqlCatalog]]:
    """Yield the URL of a catalog whose warehouse is a folder, and the catalog behind it."""
    uri = f"sqlite:///{folder}/catalog.db"
    catalog = SqlCatalog("rest", uri=uri, warehouse=folder.as_uri())
    handler = type("Handler", (_Handler,), {"catalog": catalog, "lock": Lock()})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", catalog
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    catalog: SqlCatalog
    lock: Lock

    def log_message(self, *_: Any) -> None:
        """Print nothing."""

    def do_GET(self) -> None:
        self._reply()

    do_HEAD = do_POST = do_GET  # noqa: N815 - names of http.server

    def _reply(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = urlsplit(self.path).path.strip("/").split("/")[1:]
        try:
            with self.lock:
                status, body = 200, self._answer(path, content)
        except tuple(_STATUS) as error:
            status = _STATUS[type(error)]
            about: Any = {"message": str(error), "type": type(error).__name__, "code": status}
            body = json.dumps({"error": str(error) if path[0] == "oauth" else about})
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body.encode())))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body.encode())

    def _answer(self, path: list[str], content: bytes) -> str:
        if path == ["oauth", "tokens"]:
            return _token(content)
        if self.headers["Authorization"] != f"Bearer {TOKEN}":
            raise PermissionError("no token")
        match path:
            case ["config"]:
                return '{"defaults": {}, "overrides": {}}'
            case ["namespaces"]:
                namespace = tuple(json.loads(content)["namespace"])
                self.catalog.create_namespace(namespace)
                return json.dumps({"namespace": namespace, "properties": {}})
            case ["namespaces", namespace]:
                properties = self.catalog.load_namespace_properties(namespace)
                return json.dumps({"namespace": [namespace], "properties": properties})
            case ["namespaces", namespace, "tables"]:
                return _written(self._created(namespace, content))
            case ["namespaces", namespace, "tables", name]:
                return self._of_table((namespace, name), content)
        raise NotImplementedError(self.path)

    def _created(self, namespace: str, content: bytes) -> Table:
        body = {"location": None} | json.loads(content)
        request = CreateTableRequest.model_validate(body)
        assert request.stage_create
        name, schema = (namespace, request.name), request.table_schema
        return self.catalog._create_staged_table(name, schema, properties=request.properties)

    def _of_table(self, name: tuple[str, str], content: bytes) -> str:
        if self.command != "POST":
            return _written(self.catalog.load_table(name))
        request = CommitTableRequest.model_validate_json(content)
        named: Any = type("Named", (), {"name": lambda _: name})()
        done = self.catalog.commit_table(named, request.requirements, request.updates)
        return done.model_dump_json(by_alias=True)


def _token(content: bytes) -> str:
    form = {name: value for name, (value,) in parse_qs(content.decode()).items()}
    if (form["client_id"], form["client_secret"]) != (CLIENT, SECRET):
        raise PermissionError("invalid_client")
    return json.dumps({"access_token": TOKEN, "token_type": "bearer", "expires_in": 60})


def _written(table: Table) -> str:
    metadata = json.loads(table.metadata.model_dump_json())
    location = table.metadata_location
    return json.dumps({"metadata-location": location, "metadata": metadata, "config": {}})
