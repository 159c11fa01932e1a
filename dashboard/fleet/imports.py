"""Import of a cluster description: its differences first, then its application."""

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django_htmx.http import HttpResponseClientRedirect

from controlplane.access.roles import ADMIN
from controlplane.cluster_spec.apply import apply_description
from controlplane.cluster_spec.document import BadDescription
from controlplane.cluster_spec.example import EXAMPLE
from controlplane.cluster_spec.foreign import parse_foreign
from controlplane.cluster_spec.report import ApplyReport
from controlplane.errors import Conflict, Forbidden, Invalid
from controlplane.models import FollowedFile
from controlplane.numbers import counted
from dashboard.frame.headline import Headline
from dashboard.guards import PageRequest, anyone_page
from dashboard.responses import notify, render_page
from dashboard.thresholds import BAD, GOOD

# So many names of a part are shown, and so many errors.
_SHOWN: Final = 12
_FAULTS_SHOWN: Final = 50
_FIELDS_SHOWN: Final = 200


@anyone_page
def import_page(request: PageRequest) -> HttpResponse:
    """Render the form, or apply its text; without `apply`, render what that would change."""
    if not request.actor.is_any_admin:
        raise Forbidden(ADMIN)
    if request.method != "POST":
        return _answer(request, {})
    try:
        text = _text(request)
        prune = bool(request.POST.get("prune"))
        checked = _digest(f"{text}\n{prune}")
        report = apply_description(
            request.actor, parse_foreign(text), apply=request.POST.get("checked") == checked,
            prune=prune, reason=request.POST.get("reason", ""),
        )  # fmt: skip
    except BadDescription as bad:
        return _refuse(request, bad.faults)
    except (Invalid, Conflict) as refusal:
        faults = refusal.fields if isinstance(refusal, Invalid) else {"": [str(refusal)]}
        return _refuse(request, faults)
    if report.applied:
        return _finish(request, report)
    context = {
        "headline": _headline(report),
        "report": report,
        "differences": _differences(report),
        "fields": report.differences[:_FIELDS_SHOWN],
        "checked": checked,
        "text": text,
        "prune": prune,
    }
    return _answer(request, context)


def _text(request: PageRequest) -> str:
    """Return the submitted file, or the text of the field. Raises `BadDescription`."""
    file = request.FILES.get("file")
    if file is None:
        text = request.POST.get("text", "")
    else:
        try:
            text = file.read().decode("utf-8-sig")
        except UnicodeDecodeError:
            raise BadDescription({"": ["The file is not UTF-8 text"]}) from None
    if not text.strip():
        raise BadDescription({"": ["Choose a file, or paste a description"]})
    return text


def _digest(text: str) -> str:
    """Return the hash that ties the application to the checked text."""
    return hashlib.sha256("\n".join(text.split()).encode("utf-8", "surrogatepass")).hexdigest()


def _finish(request: PageRequest, report: ApplyReport) -> HttpResponse:
    made = "is created" if report.new else f"has {report.changes:,} changes"
    notify(request, f"{report.cluster} {made}. A new cluster is stopped: start it here.")
    url = reverse("cluster", args=[report.cluster])
    return HttpResponseClientRedirect(url) if request.htmx else redirect(url)


def _differences(report: ApplyReport) -> list[dict[str, Any]]:
    """Return the changed rows of each part and kind: the first names, and how many follow."""
    kinds = {"created": report.created, "changed": report.changed, "removed": report.removed}
    return [
        {
            "part": part.replace("_", " "),
            "kind": kind,
            "count": len(names),
            "names": ", ".join(names[:_SHOWN]),
            "more": max(0, len(names) - _SHOWN),
        }
        for kind, rows in kinds.items()
        for part, names in rows.items()
    ]


def _faults(faults: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return errors with their places in the document, "" for the whole."""
    rows = [{"place": place, "text": text} for place, texts in faults.items() for text in texts]
    return rows[:_FAULTS_SHOWN]


def _headline(report: ApplyReport) -> Headline:
    """Return what the description would change."""
    if not report.changes:
        why = " ".join(f"{text.rstrip('.')}." for text in report.left)
        return Headline(f"{report.cluster} is already as described", why)
    what = f"Changes {report.cluster}: {counted(report.changes, 'changes')}"
    if report.new:
        what = f"Creates the cluster {report.cluster}"
    if report.placed:
        what += f", places {counted(report.placed, 'queries')}"
    if removed := sum(map(len, report.removed.values())):
        what += f", of which {removed:,} remove something"
    return Headline(what, "Nothing is changed yet.", GOOD)


def _refuse(request: PageRequest, faults: Mapping[str, Any]) -> HttpResponse:
    rows = _faults(faults)
    what = f"Nothing was changed: the description has {counted(len(rows), 'faults')}"
    return _answer(request, {"faults": rows, "headline": Headline(what, grade=BAD)}, 422)


def _answer(request: PageRequest, context: dict[str, Any], status: int = 200) -> HttpResponse:
    template = "_import_report.html" if request.htmx else "cluster_import.html"
    seen = request.actor.clusters
    rows = (
        FollowedFile.objects.all()
        if seen is None
        else FollowedFile.objects.filter(cluster__in=seen)
    )
    return render_page(request, template, {"example": EXAMPLE, "followed": rows} | context, status)
