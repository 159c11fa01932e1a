"""End of a WebSocket whose Redis or client is away: one line in the log, a code to reconnect."""

import logging
from contextlib import suppress
from typing import Any, Final

from redis.exceptions import RedisError

# RFC 6455 and IANA: "try again later".
TRY_AGAIN_LATER: Final = 1013
logger = logging.getLogger(__name__)


# Channels, asgiref and uvicorn each declare other types of an ASGI application.
def close_on_loss(sockets: Any) -> Any:
    """Return an application that closes a socket with 1013 while Redis does not respond.

    The loss of the client's connection ends it, too, without a traceback: both are ordinary.
    """

    async def application(scope: Any, receive: Any, send: Any) -> None:
        try:
            await sockets(scope, receive, send)
        except (RedisError, OSError) as lost:
            # uvicorn reports a lost client as an OSError, redis-py a lost server as one of its own.
            logger.warning("The socket %s ends: %r", scope.get("path"), lost)
            with suppress(OSError, RuntimeError):
                await send({"type": "websocket.close", "code": TRY_AGAIN_LATER})

    return application
