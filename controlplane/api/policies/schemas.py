"""Schemas of policies, blackouts, exclusions and decisions."""

from datetime import datetime
from typing import Any

from django.utils import timezone
from pydantic import ConfigDict, Field, StrictInt, create_model

from controlplane.api.common.derived import columns_of
from controlplane.api.common.schemas import ListOut, ReasonIn
from controlplane.models import Blackout, Cluster, Decision, Exclusion
from controlplane.policies.blackouts import blackout_until, cron_text
from controlplane.policies.description import summary
from controlplane.policies.settings import PolicySettings, optional_fields
from controlplane.policies.store import policy_row, stored_settings
from controlplane.watch.codes import CODES

_SENT: Any = create_model("_Sent", __base__=ReasonIn, **optional_fields())


class PolicyOut(PolicySettings):
    """The policy of a cluster, the defaults where none was set; `summary` describes it."""

    summary: str
    changed_by: str
    changed_at: datetime | None

    @classmethod
    def of(cls, cluster: Cluster) -> "PolicyOut":
        """Return the policy of a cluster."""
        row = policy_row(cluster)
        settings = stored_settings(row)
        return cls(
            **settings.model_dump(), summary=summary(settings), changed_by=row.changed_by,
            changed_at=row.changed_at,
        )  # fmt: skip


class PolicyIn(_SENT):  # type: ignore[misc]  # the fields are those of the settings
    """The settings to change; the others stay. auto_from and auto_until: null for none."""

    model_config = ConfigDict(extra="forbid", strict=True)

    def changes(self) -> dict[str, Any]:
        """Return the settings in the request."""
        sent: dict[str, Any] = self.model_dump(exclude_unset=True, exclude={"reason"})
        return sent


class BlackoutIn(ReasonIn):
    """A cron line (five fields, UTC) with the minutes after each of its moments, or a range."""

    model_config = ConfigDict(extra="forbid")

    cron: str = Field("", max_length=100)
    minutes: StrictInt = 0
    starts_at: datetime | None = None
    ends_at: datetime | None = None


_BLACKOUT: Any = columns_of(Blackout, "id cron minutes starts_at ends_at reason owner created_at")


class BlackoutOut(_BLACKOUT):  # type: ignore[misc]  # the fields are columns
    """A blackout; description: its cron line in words; until: its end if it is in effect."""

    description: str
    until: datetime | None

    @staticmethod
    def resolve_description(row: Blackout) -> str:
        """Return the cron line in words."""
        return cron_text(row.cron) if row.cron else ""

    @staticmethod
    def resolve_until(row: Blackout) -> datetime | None:
        """Return the end of the blackout, null if it is not in effect."""
        return blackout_until(row, timezone.now())


class ExclusionIn(ReasonIn):
    """An exclusion: a query, node or stream by name, and its expiry."""

    model_config = ConfigDict(extra="forbid")

    kind: str
    subject: str = Field(max_length=100)
    expires_at: datetime


_EXCLUSION: Any = columns_of(Exclusion, "id kind subject reason owner created_at expires_at")


class ExclusionOut(_EXCLUSION):  # type: ignore[misc]  # as above
    """An exclusion that has not expired."""


_DECISION: Any = columns_of(
    Decision, "id loop code number limit unit text proposal first_at last_at count"
)


class DecisionOut(_DECISION):  # type: ignore[misc]  # as above
    """A decision of a watch loop; count: the number of equal consecutive decisions.

    about is what code means; number decided, limit is what it was
    compared with, both in unit: share, ratio, ms, s, nodes, moves or records/s.
    """

    about: str

    @staticmethod
    def resolve_about(row: Decision) -> str:
        """Return what the code means."""
        return CODES[row.code].about if row.code in CODES else ""


class DecisionPage(ListOut):
    """A page of decisions, newest first."""

    decisions: list[DecisionOut]
