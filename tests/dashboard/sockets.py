"""A browser's end of a socket, for an ASGI application (channels.testing would need Daphne)."""

import json
from collections.abc import Sequence
from typing import Any, cast

from asgiref.testing import ApplicationCommunicator


class Socket:
    """Connects, sends and receives JSON."""

    def __init__(self, application: Any, path: str, headers: Sequence[tuple[bytes, bytes]]) -> None:
        scope = {
            "type": "websocket",
            "path": path,
            "query_string": b"",
            "headers": list(headers),
            "subprotocols": [],
        }
        # asgiref ships no types for its testing tools.
        self.peer: Any = cast("Any", ApplicationCommunicator)(application, scope)

    async def connect(self) -> bool:
        """Begin the handshake and tell whether it was accepted."""
        await self.peer.send_input({"type": "websocket.connect"})
        answer = await self.peer.receive_output(timeout=60)
        return bool(answer["type"] == "websocket.accept")

    async def send(self, value: Any) -> None:
        """Send a JSON value."""
        await self.peer.send_input({"type": "websocket.receive", "text": json.dumps(value)})

    async def receive(self) -> Any:
        """Return the next JSON value, within five seconds."""
        message = await self.peer.receive_output(timeout=60)
        assert message["type"] == "websocket.send", message
        return json.loads(message["text"])

    async def disconnect(self) -> None:
        """Hang up and wait for the application to end."""
        await self.peer.send_input({"type": "websocket.disconnect", "code": 1000})
        await self.peer.wait(timeout=60)
