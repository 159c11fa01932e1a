"""A name whose addresses change from one look-up to the next, and a server that must not be met."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest

NAME: Final = "rebinding.example"
FORBIDDEN: Final = "127.0.0.2"


def rebind(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> list[str]:
    """Resolve `NAME` to each of the addresses in turn, then to `FORBIDDEN`; return what it was."""
    lookup, answers, given = socket.getaddrinfo, iter(addresses), list[str]()

    def answer(host: str, *args: Any, **kwargs: Any) -> Any:
        if host == NAME:
            host = next(answers, FORBIDDEN)
            given.append(host)
        return lookup(host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    return given


@contextmanager
def unmet_server(port: int) -> Iterator[None]:
    """Listen at the forbidden address; fail if somebody connects."""
    with socket.create_server((FORBIDDEN, port)) as server:
        yield
        server.settimeout(0)
        with pytest.raises(BlockingIOError):
            server.accept()


def open_and_closed_port() -> tuple[socket.socket, int, int]:
    """Return a listening socket with its port, and a port at which nothing listens."""
    server = socket.create_server(("127.0.0.1", 0))
    with socket.create_server(("127.0.0.1", 0)) as other:
        closed = other.getsockname()[1]
    return server, server.getsockname()[1], closed
