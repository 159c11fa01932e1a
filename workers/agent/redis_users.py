"""Users of Redis for drivers: each reaches the keys of its cluster's data plane, and no others.

A driver is started with the URL of its user, so neither its Python workers nor its executors can
read or write other clusters, the queues of Celery, the channel layer or the rest of the site. The
password is of an epoch of the cluster's lease: when another agent takes the cluster over, Redis
ends the connections of the driver before and accepts no further ones.
"""

import hmac
import logging
from collections.abc import Collection
from contextlib import suppress
from hashlib import sha256
from typing import Any, Final
from urllib.parse import urlsplit

import redis

from controlplane.processes.runtime.leases import Leases
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

    `url`: of the site's user; `secret`: from which the passwords are derived, so none is stored;
    `leases`: of the clusters.
    """

    def __init__(self, client: "redis.Redis", url: str, secret: str, leases: Leases) -> None:
        self._client = client
        self._site_url = url
        self._secret = secret.encode()
        self._leases = leases
        self._refusal = ""
        # The epochs of the users that this process has created, by cluster.
        self._created = dict[str, int]()

    def url_of(self, cluster: str) -> str:
        """Return the URL for the driver of a cluster; `keep` creates its user.

        Raises `OSError` without the lease of the cluster.
        """
        if self._refusal:
            return self._site_url
        parts = urlsplit(self._site_url)
        host = parts.netloc.rpartition("@")[2]
        login = f"{PREFIX}{cluster}:{self.password_of(cluster)}"
        return parts._replace(netloc=f"{login}@{host}").geturl()

    def password_of(self, cluster: str) -> str:
        """Return the password of a driver of this epoch, also for the database of results.

        Raises `OSError` without the lease of the cluster.
        """
        epoch = self._leases.held().get(cluster)
        if epoch is None:
            raise OSError(f"this agent has no lease of {cluster} any more")
        return self._password(cluster, epoch)

    def keep(self, clusters: Collection[str]) -> None:
        """Create users of clusters with a lease; delete those of none of `clusters`; idempotent.

        Call it often: Redis forgets users when it restarts. A user is deleted with its connections.
        """
        try:
            self._reconcile(clusters)
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

    def _reconcile(self, clusters: Collection[str]) -> None:
        known, held = {str(name) for name in self._client.acl_users()}, self._leases.held()
        for cluster, epoch in held.items():
            # Not all every time: each takes Redis a millisecond where there are hundreds.
            is_known = f"{PREFIX}{cluster}" in known
            if not is_known or self._created.get(cluster) != epoch:
                self._create(cluster, epoch)
        old = {name for name in known if name.startswith(PREFIX)}
        if old := old - {f"{PREFIX}{cluster}" for cluster in clusters}:
            self._client.acl_deluser(*old)
        self._created = {name: number for name, number in self._created.items() if name in held}

    def _create(self, cluster: str, epoch: int) -> None:
        """Create the user of an epoch, unless another agent has the lease by now."""
        name = f"{PREFIX}{cluster}"
        pipe: Any
        with self._client.pipeline() as pipe, suppress(redis.WatchError):
            if not self._leases.is_current(pipe, cluster):
                return
            pipe.multi()
            if self._created.get(cluster) != epoch:
                pipe.acl_deluser(name)
            pipe.execute_command("ACL SETUSER", name, *self._rules(cluster, epoch))
            pipe.execute()
            self._created[cluster] = epoch

    def _rules(self, cluster: str, epoch: int) -> list[str]:
        digest = sha256(self._password(cluster, epoch).encode()).hexdigest()
        patterns = [f"~{pattern}" for pattern in driver_patterns(cluster)]
        return ["reset", "on", f"#{digest}", "resetchannels", *patterns, *_COMMANDS]

    def _password(self, cluster: str, epoch: int) -> str:
        text = f"driver of {cluster}, epoch {epoch}"
        return hmac.new(self._secret, text.encode(), sha256).hexdigest()
