"""Detection of losses: Redis, checkpoint and database are compared.

Pure functions. A micro-batch writes its telemetry to Redis before Spark commits it in the
checkpoint, and a routing version is in the database before it is in Redis. So Redis is not behind
the checkpoint, and the database not behind Redis, unless one of them lost data.
"""

from dataclasses import dataclass, field, replace

from controlplane.models import Incident
from controlplane.wire.generation import Generation

Kind = Incident.Kind


@dataclass(frozen=True, slots=True)
class CheckpointFacts:
    """A checkpoint: its newest finished batch and newest started one (Weir's numbers).

    `version`: routing of the newest started batch; `moving`: whether tasks transferred state in
    the newest whole batch, so that it is in Redis alone.
    """

    whole: int | None
    started: int
    version: int
    moving: bool = False


@dataclass(frozen=True, slots=True)
class RedisFacts:
    """Redis: its generation, newest finished batch (-1: none), newest routing version.

    `half_written`: a batch after the newest finished one of which some results are written.
    `event_ms`: the newest event time of the newest finished batch.
    """

    generation: Generation = field(default_factory=Generation)
    batch: int = -1
    version: int = 0
    half_written: int | None = None
    event_ms: int | None = None


@dataclass(frozen=True, slots=True)
class DatabaseFacts:
    """The database: the generation and newest batch that it has, and its routing version.

    `checkpoint`: whether it has a batch of this checkpoint; `unread`: records of the log that were
    unread at the agent's last observation.
    """

    generation: str = ""
    batch: int = -1
    version: int = 0
    checkpoint: bool = False
    unread: int | None = None


@dataclass(frozen=True, slots=True)
class LossFacts:
    """The facts of all three; `checkpoint` is None without a batch or while it cannot be read."""

    redis: RedisFacts
    database: DatabaseFacts
    checkpoint: CheckpointFacts | None = None

    @property
    def newest(self) -> int:
        """Return the newest batch of all three stores."""
        started = self.checkpoint.started if self.checkpoint else -1
        return max(self.redis.batch, self.redis.generation.floor, self.database.batch, started)

    @property
    def newest_version(self) -> int:
        """Return the newest routing version of the data plane."""
        return max(self.redis.version, self.checkpoint.version if self.checkpoint else 0)

    def without_checkpoint(self) -> "LossFacts":
        """Return the facts without the checkpoint, which a running driver uses."""
        return replace(self, checkpoint=None, database=replace(self.database, checkpoint=False))


def detect_losses(facts: LossFacts) -> list[Kind]:
    """Return which stores lost data or were restored from a backup, in the order of repair."""
    losses = []
    if is_database_older(facts):
        losses.append(Kind.DATABASE_OLDER)
    if redis := _redis(facts):
        losses.append(redis)
    if checkpoint := _checkpoint(facts):
        losses.append(checkpoint)
    return losses


def is_database_older(facts: LossFacts) -> bool:
    """Return True if the data plane has routing versions that the database does not have."""
    return facts.newest_version > facts.database.version


def _redis(facts: LossFacts) -> Kind | None:
    own_newest, known = facts.redis.generation, facts.database.generation
    if known and own_newest.id != known:
        return Kind.REDIS_LOST
    whole = facts.checkpoint.whole if facts.checkpoint else None
    newest = max(facts.database.batch, -1 if whole is None else whole)
    if own_newest.id and newest > max(facts.redis.batch, own_newest.floor):
        return Kind.REDIS_OLDER
    return None


def _checkpoint(facts: LossFacts) -> Kind | None:
    if not facts.database.checkpoint:
        return None
    if facts.checkpoint is None:
        return Kind.CHECKPOINT_LOST
    if facts.checkpoint.started < max(facts.redis.batch, facts.database.batch):
        return Kind.CHECKPOINT_OLDER
    return None
