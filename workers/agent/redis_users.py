"""Users of Redis for drivers: each reaches the keys of its cluster's data plane, and no others.

A driver is started with the URL of its user, so neither its Python workers nor its executors can
read or write other clusters, the queues of Celery, the channel layer or the rest of the site.
"""

import hmac
import logging
from collections.abc import Collection, Mapping
from hashlib import sha256
from typing import Any, Final
from urllib.parse import urlsplit

import redis

from controlplane.wire.keys import driver_patterns

logger = logging.getLogger("weir.agent")

PREFIX: Final = "weir-driver-"
# The commands of the data plane, each of which names its keys. Scripts and transactions: Redis
# checks every command in them. Without KEYS, SCAN, FLUSHALL, CONFIG, CLIENT, ACL, MONITOR and the
# like, which need no key.
_COMMANDS: Final = (
    "+@hash", "+@list", "+@set", "+@sortedset", "+@stream", "+@string", "+@transaction",
    "+del", "+unlink", "+exists", "+expire", "+pexpire", "+expireat", "+pexpireat", "+persist",
    "+type", "+ttl", "+pttl", "+time", "+ping", "+select", "+eval", "+evalsha", "+script|load",
    "+script|exists", "-@dangerous", "-@blocking", "+info",
)  # fmt: skip


class DriverUsers:
    """The users of the drivers of one Redis; without the right to create users, that of the site.

    `url`: of the site's user; `secret`: from which the passwords are derived, so none is stored.
    """

    def __init__(self, client: "redis.Redis", url: str, secret: str) -> None:
        self._client = client
        self._site_url = url
        self._secret = secret.encode()
        self._refusal = ""
        # The users that this process has created.
        self._created = set[str]()

    def url_of(self, cluster: str) -> str:
        """Return the URL for the driver of a cluster; `keep` creates its user."""
        if self._refusal:
            return self._site_url
        parts = urlsplit(self._site_url)
        host = parts.netloc.rpartition("@")[2]
        login = f"{PREFIX}{cluster}:{self._password(cluster)}"
        return parts._replace(netloc=f"{login}@{host}").geturl()

    def keep(self, clusters: Collection[str]) -> None:
        """Create the users of these clusters and delete those of others; idempotent.

        Call it often: Redis forgets users when it restarts. A user is deleted with its connections.
        """
        try:
            self._reconcile({f"{PREFIX}{cluster}": cluster for cluster in clusters})
        except redis.ResponseError as error:
            if not self._refusal:
                logger.warning(
                    "Redis creates no users for drivers (%s), so they run as that of REDIS_URL, "
                    "who reaches all clusters: allow it ACL SETUSER, DELUSER and USERS",
                    error,
                )
            self._refusal = str(error)
        except redis.RedisError as error:
            logger.debug("Redis does not respond: %s", error)
        else:
            self._refusal = ""

    def _reconcile(self, wanted: Mapping[str, str]) -> None:
        known = {str(name) for name in self._client.acl_users()}
        pipe: Any = self._client.pipeline(transaction=False)
        # Not all every time: each takes Redis a millisecond where there are hundreds.
        for name in wanted.keys() - (known & self._created):
            pipe.execute_command("ACL SETUSER", name, *self._rules(wanted[name]))
        if old := [name for name in known - wanted.keys() if name.startswith(PREFIX)]:
            pipe.acl_deluser(*old)
        pipe.execute()
        self._created = set(wanted)

    def _rules(self, cluster: str) -> list[str]:
        digest = sha256(self._password(cluster).encode()).hexdigest()
        patterns = [f"~{pattern}" for pattern in driver_patterns(cluster)]
        return ["reset", "on", f"#{digest}", "resetchannels", *patterns, *_COMMANDS]

    def _password(self, cluster: str) -> str:
        return hmac.new(self._secret, f"driver of {cluster}".encode(), sha256).hexdigest()
