"""The part of Kubernetes' API that Spark uses: pods are processes of this machine.

A pod runs what the image would: `weir` with the container's arguments, in a directory of its own.
"""

import json
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import psutil

from tests.support.driver import kill_all

HOST: Final = "127.0.0.1"
_WEIR: Final = (sys.executable, "-c", "import controlplane.cli.main as m; m.main()")
_GIVEN: Final = {"status.podIP": HOST, "metadata.name": ""}
_PHASES: Final = {None: "Running", 0: "Succeeded"}


class Pod:
    """A pod as the API shows it, and the process of its container."""

    def __init__(self, spec: dict[str, Any], folder: Path) -> None:
        self.spec = spec
        self.name = str(spec["metadata"]["name"])
        folder.mkdir()
        (container,) = spec["spec"]["containers"]
        with (folder / "log").open("wb") as log:
            self.process = psutil.Popen(
                [*_WEIR, *container["args"]],
                env=self._environment(container, folder), cwd=folder, stdout=log, stderr=log,
            )  # fmt: skip

    def _environment(self, container: dict[str, Any], folder: Path) -> dict[str, str]:
        given = {row["name"]: self._value(row) for row in container["env"]}
        own = {"WEIR_DATA": str(folder), "SPARK_LOCAL_DIRS": str(folder / "local")}
        return {**os.environ, **given, **own}

    def _value(self, row: dict[str, Any]) -> str:
        path = row.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
        return str(row.get("value") or "") if path is None else _GIVEN[path] or self.name

    def matches(self, selector: str) -> bool:
        labels = self.spec["metadata"]["labels"]
        wanted = (part.rsplit("=", 1) for part in selector.split(",") if part)
        return all(
            labels.get(name.rstrip("!")) != value
            if name.endswith("!")
            else labels.get(name) == value
            for name, value in wanted
        )

    def shown(self) -> dict[str, Any]:
        phase = _PHASES.get(self.process.poll(), "Failed")
        return {**self.spec, "status": {"phase": phase, "podIP": HOST, "startTime": ""}}


class Pods:
    """A namespace: its URL as a master of Spark, and its pods by name."""

    def __init__(self, directory: Path, url: str) -> None:
        self.directory = directory
        self.url = url
        self.pods: dict[str, Pod] = {}
        self.started = 0

    def settings(self) -> tuple[str, ...]:
        """Return settings of Spark: two executors, as the chart has them, and no watch."""
        return (
            "spark.executor.instances=2",
            "spark.kubernetes.namespace=streams",
            "spark.kubernetes.container.image=weir",
            "spark.kubernetes.executor.enableApiWatcher=false",
            "spark.kubernetes.executor.apiPollingInterval=1s",
        )

    def create(self, spec: dict[str, Any]) -> dict[str, Any]:
        self.started += 1
        pod = Pod(spec, self.directory / f"pod-{self.started}")
        self.pods[pod.name] = pod
        return pod.shown()

    def delete(self, pods: list[Pod]) -> None:
        for pod in pods:
            # The process of a pod whose driver has ended ends by itself.
            with suppress(psutil.NoSuchProcess):
                kill_all([*pod.process.children(recursive=True), pod.process])
            pod.process.wait(timeout=30)
            self.pods.pop(pod.name, None)

    def executors(self) -> dict[str, psutil.Process]:
        """Return the JVM of each executor that runs, as its nodes' reports name it."""
        return {
            f"{socket.gethostname()}/{pod.spec['metadata']['labels']['spark-exec-id']}": pod.process
            for pod in list(self.pods.values())
            if pod.process.poll() is None
        }


def _handler(pods: Pods) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body: Any = json.loads(self.rfile.read(length) or b"{}")
            parts = urlsplit(self.path)
            kind, *name = parts.path.split("/namespaces/streams/")[-1].split("/")
            selector = parse_qs(parts.query).get("labelSelector", [""])[0]
            found = [pod for pod in list(pods.pods.values()) if pod.matches(selector)]
            if name:
                found = [pod for pod in found if pod.name == name[0]]
            result = body
            if kind == "pods" and self.command == "POST":
                result = pods.create(body)
            elif kind == "pods" and self.command == "DELETE":
                pods.delete(found)
                result = {"kind": "Status", "apiVersion": "v1", "status": "Success"}
            elif kind == "pods":
                rows = [pod.shown() for pod in found]
                listed = {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": rows}
                result = rows[0] if name and rows else listed
            text = json.dumps(result).encode()
            self.send_response(201 if self.command == "POST" else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_DELETE = do_PATCH = do_PUT = answer  # noqa: N815

        def log_message(self, *_arguments: Any) -> None:
            """Log nothing: Spark lists its pods every second."""

    return Handler


@contextmanager
def running_pods(directory: Path) -> Iterator[Pods]:
    """Yield a namespace of an API without authentication; end all of its pods."""
    pods = Pods(directory, "")
    with ThreadingHTTPServer((HOST, 0), _handler(pods)) as server:
        pods.url = f"k8s://http://{HOST}:{server.server_port}"
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield pods
        finally:
            pods.delete(list(pods.pods.values()))
            server.shutdown()
