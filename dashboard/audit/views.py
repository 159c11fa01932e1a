"""The audit log: a page of a time range with folded machine actions, or of single entries."""

from datetime import datetime
from typing import Any, Final

from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.utils import timezone

from controlplane import numbers
from controlplane.access import audit_chain
from controlplane.access.audit_folding import FoldedPage, folded_page
from controlplane.lists.kinds import KINDS
from controlplane.numbers import counted, lowered
from controlplane.pagination.folding import period_of
from dashboard import thresholds
from dashboard.frame.headline import Headline
from dashboard.guards import PageRequest, anyone_action, anyone_page
from dashboard.lists.page import RANGE_NAMES, ListPage, list_page, render_list_page
from dashboard.responses import notify
from dashboard.time_range import TimeRange, time_range_of

DEFAULT_RANGE: Final = "24h"


@anyone_page
def index(request: PageRequest) -> HttpResponse:
    """Render entries of visible clusters in a time range, the newest first.

    Machine actions are folded, unless the address has fold=no.
    """
    time_range = time_range_of(request.GET, timezone.now(), DEFAULT_RANGE)
    others = {*RANGE_NAMES, "fold", "cursor"}
    shown = list_page(request, KINDS["audit"], time_range=time_range, others=others)
    context: dict[str, Any] = {
        "span": time_range,
        "verification": audit_chain.last_verification(),
        "may_verify": request.actor.is_admin,
        "is_folded": request.GET.get("fold") != "no",
    }
    if shown.listing is not None and context["is_folded"]:
        period = period_of(time_range.length)
        after = request.GET.get("cursor", "")
        folded = folded_page(
            shown.listing, time_range.start, time_range.end, after, total=shown.page.total
        )
        context |= {"folded": folded, "period": numbers.duration(period)}
    context["headline"] = _headline(shown, time_range, context.get("folded"))
    return render_list_page(request, "audit.html", "_audit_table.html", shown, context)


@anyone_action
def verify(request: PageRequest) -> HttpResponseRedirect:
    """Verify the hash chain of the audit log now."""
    if audit_chain.request_verification(request.actor).is_pending:
        notify(request, "A worker verifies the audit log; the result is here when it is done.")
    return redirect("audit")


def _headline(shown: ListPage, time_range: TimeRange, folded: FoldedPage | None) -> Headline:
    """Return how many changes there were, and whether the log is intact."""
    if folded is None:
        what = counted(shown.page.total, "entries")
    else:
        what = f"{counted(folded.changes, 'changes')} by people"
        if folded.machines:
            what = f"{what}, {folded.machines:,} by programs and Weir"
    what = f"{what}: {lowered(time_range.label)}"
    last = audit_chain.last_verification()
    if last.fault is not None:
        return Headline(what, "The audit log is not intact: see below.", thresholds.BAD)
    if last.verified_at is None:
        return Headline(what, "The audit log was not verified yet.")
    verified = _ago(last.verified_at)
    return Headline(what, f"The log is intact; verified {verified}.", thresholds.GOOD)


def _ago(moment: datetime) -> str:
    return numbers.age(moment, timezone.now())
