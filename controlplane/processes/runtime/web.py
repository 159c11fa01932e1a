"""`python -m controlplane.processes.runtime.web`: one web process, on a socket of the runner.

All web processes accept connections from one socket, which the runner opens and keeps. A process
that ends therefore takes only its own connections with it: others accept those that wait.
"""

import argparse
import socket
import sys
from typing import Final

import uvicorn

from controlplane.processes.runtime.request_bounds import MAX_CONNECTIONS

BACKLOG: Final = 2048
# For requests in progress when the process is asked to stop (s).
GRACE_S: Final = 3
# A message of a socket asks for samples since a moment; longer ones end it (bytes).
MAX_SOCKET_MESSAGE: Final = 16 * 1024


def open_listener(host: str, port: int) -> socket.socket:
    """Return a listening socket that child processes may inherit. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=BACKLOG)


def configuration() -> uvicorn.Config:
    """Return the configuration of the server of every web process."""
    return uvicorn.Config(
        "controlplane.processes.asgi:application",
        access_log=False,
        # Records go to the handlers of the settings.
        log_config=None,
        # By default uvicorn believes forwarded headers of every process on this machine; trusted
        # proxies are a setting (controlplane.processes.serving.forwarded).
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_graceful_shutdown=GRACE_S,
        lifespan="on",
        http="controlplane.processes.serving.http_protocol:LimitedHeadProtocol",
        ws_max_size=MAX_SOCKET_MESSAGE,
        limit_concurrency=MAX_CONNECTIONS,
    )


def main() -> int:
    """Serve until a signal; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m controlplane.processes.runtime.web")
    parser.add_argument("--fd", type=int, help="an inherited listening socket")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    arguments = parser.parse_args()
    if arguments.fd is None:
        listener = open_listener(arguments.host, arguments.port)
    else:
        listener = socket.socket(fileno=arguments.fd)
    server = uvicorn.Server(configuration())
    server.run(sockets=[listener])
    return 0 if server.started else 1


if __name__ == "__main__":
    sys.exit(main())
