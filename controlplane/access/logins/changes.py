"""Messages to long-lived connections that the access of their user may have changed.

A connection that receives the message checks its authorization again and closes if it has none.
"""

from functools import partial
from typing import Final

from channels.layers import get_channel_layer

from controlplane.events import event_loop
from controlplane.events.after_commit import after_commit
from controlplane.models import ApiToken, LoginSession

MESSAGE: Final = {"type": "access.changed"}


def access_group(user_id: int) -> str:
    """Return the channel-layer group of the connections of a user."""
    return f"access.{user_id}"


def announce_access_change(user_id: int) -> None:
    """Let the connections of a user check their authorization after the commit.

    Without Redis nothing is sent: they check it periodically as well.
    """
    after_commit("close connections without access", partial(_send, user_id))


def announce_if_connected(user_id: int) -> None:
    """Announce a change, unless the user can have no connection."""
    connected = LoginSession.objects.filter(user=user_id).exists()
    if connected or ApiToken.objects.filter(user=user_id).exists():
        announce_access_change(user_id)


def _send(user_id: int) -> None:
    layer = get_channel_layer()
    if layer is not None:
        event_loop.run(layer.group_send(access_group(user_id), MESSAGE))
