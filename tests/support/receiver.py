"""A receiver of webhooks: a real HTTP server that keeps what came and answers as it is told."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from threading import Event, Thread


@dataclass
class Receiver:
    """Where it listens, the statuses of its next answers (200 once they are used up), what came.

    It answers nothing while `open` is not set.
    """

    url: str = ""
    answers: list[int] = field(default_factory=list)
    open: Event = field(default_factory=Event)
    came: "Queue[tuple[dict[str, str], str]]" = field(default_factory=Queue)


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Yield a receiver on this machine."""
    found = Receiver()
    found.open.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent = self.rfile.read(int(self.headers["Content-Length"]))
            # Of bytes that are no text, nothing is lost.
            body = sent.decode(errors="surrogateescape")
            found.came.put(({name.lower(): text for name, text in self.headers.items()}, body))
            found.open.wait()
            self.send_response(found.answers.pop(0) if found.answers else 200)
            self.end_headers()
            self.wfile.write(b"told")

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        found.url = f"http://127.0.0.1:{server.server_port}/hook"
        yield found
        found.open.set()
        server.shutdown()
        thread.join()
