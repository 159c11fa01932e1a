"""Connections to servers that lose answers, where what was asked is done, or that end."""

import random
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import Any


@contextmanager
def losing_answers(port: int, share: float) -> Iterator[int]:
    """Yield the port of a proxy of a local server; so many answers end the connection instead."""
    luck = random.Random(7)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    client, _ = listener.accept()
                    server = socket.create_connection(("127.0.0.1", port))
                    for pump in (_forward(client, server), _answer(server, client)):
                        pump.start()

        def _answer(server: socket.socket, client: socket.socket) -> Thread:
            return Thread(
                target=_pump, args=(server, client, lambda: luck.random() < share), daemon=True
            )

        def _forward(client: socket.socket, server: socket.socket) -> Thread:
            return Thread(target=_pump, args=(client, server, lambda: False), daemon=True)

        Thread(target=accept, daemon=True).start()
        yield int(listener.getsockname()[1])
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)


@contextmanager
def cut_connections(port: int) -> Iterator[tuple[int, Callable[[], Any]]]:
    """Yield the port of a proxy of a local server, and what ends all connections for a block."""
    ends: list[socket.socket] = []
    is_open = Event()
    is_open.set()

    @contextmanager
    def outage() -> Iterator[None]:
        is_open.clear()
        while ends:
            with suppress(OSError):
                ends.pop().shutdown(socket.SHUT_RDWR)
        yield
        is_open.set()

    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    client, _ = listener.accept()
                    try:
                        server = socket.create_connection(("127.0.0.1", port))
                    except OSError:
                        client.close()
                        continue
                    ends.extend((client, server))
                    for pair in ((client, server), (server, client)):
                        Thread(target=_pump, args=(*pair, lambda: not is_open.is_set()),
                               daemon=True).start()  # fmt: skip

        Thread(target=accept, daemon=True).start()
        yield int(listener.getsockname()[1]), outage
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)


def _pump(source: socket.socket, target: socket.socket, is_lost: Callable[[], bool]) -> None:
    with source, target, suppress(OSError):
        while data := source.recv(65536):
            if is_lost():
                break
            target.sendall(data)
        for end in (source, target):
            end.shutdown(socket.SHUT_RDWR)
