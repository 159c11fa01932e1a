"""Policy of a cluster, blackouts, exclusions, and decisions of the watch loops."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Router, Status
from pydantic import ConfigDict, Field, StrictInt, create_model

from controlplane.access.roles import ADMIN
from controlplane.api.common.lists import list_parameters, listed
from controlplane.api.common.schemas import ReasonIn, columns_of, list_of, listed_columns_of, shown
from controlplane.api.common.security import caller, cluster_of, open_to
from controlplane.formats.moments import Moment
from controlplane.models import Blackout, Cluster, Decision, Exclusion
from controlplane.policies import blackouts, exclusions
from controlplane.policies.blackouts import blackout_until, cron_text
from controlplane.policies.description import summary
from controlplane.policies.settings import PolicySettings, optional_fields
from controlplane.policies.store import policy_row, stored_settings, update_policy
from controlplane.watch.codes import CODES
from controlplane.watch.decision_log import (
    COLUMNS,
    DecisionFilters,
    decisions_listing,
    last_decisions,
)


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


class PolicyIn(create_model("_Sent", __base__=ReasonIn, **optional_fields())):  # type: ignore[misc]
    """The settings to change; the others stay. auto_from and auto_until: null for none."""

    model_config = ConfigDict(extra="forbid", strict=True)


class BlackoutIn(ReasonIn):
    """A cron line (five fields, UTC) with the minutes after each of its moments, or a range."""

    model_config = ConfigDict(extra="forbid")

    cron: str = Field("", max_length=100)
    minutes: StrictInt = 0
    starts_at: Moment | None = None
    ends_at: Moment | None = None


class BlackoutOut(
    columns_of(Blackout, "id cron minutes starts_at ends_at reason owner created_at")  # type: ignore[misc]
):
    """A blackout; description: its cron line in words; until: its end if it is in effect."""

    model_config = shown("id description owner reason")

    description: str
    until: datetime | None

    resolve_description = staticmethod(lambda row: cron_text(row.cron) if row.cron else "")
    resolve_until = staticmethod(lambda row: blackout_until(row, timezone.now()))


class ExclusionIn(ReasonIn):
    """An exclusion: a query, node or stream by name, and its expiry."""

    model_config = ConfigDict(extra="forbid")

    kind: str
    subject: str = Field(max_length=100)
    expires_at: Moment


class ExclusionOut(columns_of(Exclusion, "id kind subject reason owner created_at expires_at")):  # type: ignore[misc]
    """An exclusion that has not expired."""


class DecisionOut(listed_columns_of(Decision, COLUMNS)):  # type: ignore[misc]
    """A decision of a watch loop; about is what code means."""

    about: str

    resolve_about = staticmethod(lambda row: CODES[row.code].about if row.code in CODES else "")


DecisionPage = list_of("DecisionPage", decisions=DecisionOut)


router = Router(tags=["policies"])


@router.get("/{slug}/policy", response=PolicyOut)
def get_policy(request: HttpRequest, slug: str) -> Any:
    """Return the cluster's policy, the defaults where none was set."""
    return PolicyOut.of(cluster_of(request))


@router.patch("/{slug}/policy", response=PolicyOut, auth=open_to(ADMIN))
def change_policy(request: HttpRequest, slug: str, body: PolicyIn) -> Any:
    """Change some settings of the policy. Requires the role admin."""
    actor, cluster = caller(request), cluster_of(request)
    changes = body.model_dump(exclude_unset=True, exclude={"reason"})
    update_policy(actor, cluster, changes, body.reason)
    return PolicyOut.of(cluster)


@router.get("/{slug}/blackouts", response=list[BlackoutOut])
def list_blackouts(request: HttpRequest, slug: str) -> Any:
    """Return the blackouts."""
    return Blackout.objects.filter(cluster=cluster_of(request))


@router.post("/{slug}/blackouts", response={201: BlackoutOut}, auth=open_to(ADMIN))
def add_blackout(request: HttpRequest, slug: str, body: BlackoutIn) -> Any:
    """Add a blackout. Requires the role admin."""
    actor, cluster = caller(request), cluster_of(request)
    return Status(201, blackouts.add_blackout(actor, cluster, **body.model_dump()))


@router.delete("/{slug}/blackouts/{int:pk}", response={204: None}, auth=open_to(ADMIN))
def remove_blackout(request: HttpRequest, slug: str, pk: int, reason: str = "") -> Any:
    """Delete a blackout. Requires the role admin."""
    blackouts.remove_blackout(caller(request), cluster_of(request), pk, reason[:2000])
    return Status(204, None)


@router.get("/{slug}/exclusions", response=list[ExclusionOut])
def list_exclusions(request: HttpRequest, slug: str) -> Any:
    """Return the exclusions by expiry."""
    return exclusions.live_exclusions(cluster_of(request), timezone.now())


@router.post("/{slug}/exclusions", response={201: ExclusionOut})
def add_exclusion(request: HttpRequest, slug: str, body: ExclusionIn) -> Any:
    """Exclude an object from plans until a moment; a repeated request sets owner and end."""
    actor, cluster = caller(request), cluster_of(request)
    row = exclusions.add_exclusion(
        actor, cluster, body.kind, body.subject, body.reason, body.expires_at
    )
    return Status(201, row)


@router.delete("/{slug}/exclusions/{int:pk}", response={204: None})
def remove_exclusion(request: HttpRequest, slug: str, pk: int, reason: str = "") -> Any:
    """Delete an exclusion."""
    exclusions.remove_exclusion(caller(request), cluster_of(request), pk, reason[:2000])
    return Status(204, None)


@router.get("/{slug}/watch", response=list[DecisionOut])
def get_watch(request: HttpRequest, slug: str) -> Any:
    """Return the last decision of each watch loop."""
    return [row for row in last_decisions(cluster_of(request)).values() if row is not None]


@router.get(
    "/{slug}/decisions", response=DecisionPage, openapi_extra=list_parameters(DecisionFilters)
)
def list_decisions(request: HttpRequest, response: HttpResponse, slug: str) -> Any:
    """List the decisions of the watch loops, newest first.

    Query parameters loop, code, cursor, limit (up to 1000).
    """
    cluster, filters = cluster_of(request), DecisionFilters.of(request.GET)
    listing = decisions_listing(cluster, filters, "-first_at")
    return listed(request, response, listing, "decisions")
