"""Clusters that follow the files of a directory (WEIR_DESCRIPTIONS): compared, and applied.

A beat's task tries each file with `prune`. It compares again when the file, or the audit log of the
cluster, has changed, and every `AGAIN_AFTER`. Applied automatically only as the site allows
(WEIR_DESCRIPTIONS_APPLY): 1 creates and changes, `prune` removes, too.
"""

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Q

from controlplane.access.roles import Actor
from controlplane.cluster_spec.apply import apply_description
from controlplane.cluster_spec.document import BadDescription
from controlplane.cluster_spec.files import files_in
from controlplane.cluster_spec.foreign import parse_foreign
from controlplane.cluster_spec.report import ApplyReport
from controlplane.errors import Invalid, WeirError
from controlplane.models import AuditEntry, Cluster, FollowedFile

logger = logging.getLogger(__name__)
NAME: Final = "descriptions"
AGAIN_AFTER: Final = timedelta(minutes=10)
THE_FILE: Final = "the file"
# Names of rows per part, changed fields, and faults that are stored.
_SHOWN: Final = 50
_LONGEST: Final = 300


def follow_all(now: datetime) -> None:
    """Compare each file with its cluster; an error of one does not affect the others."""
    kept = []
    for file in _files(now):
        kept.append(file.name)
        try:
            _follow(file, now)
        except Exception as error:
            # The next beat retries.
            logger.exception("Following %s failed", file)
            _note_faults(file.name, {"": [f"Not compared: {error}"]}, now)
    if settings.DESCRIPTIONS:
        kept.append(settings.DESCRIPTIONS)
    FollowedFile.objects.exclude(name__in=kept).delete()


def followed(cluster: Cluster) -> FollowedFile | None:
    """Return the state of a cluster against its file, None if it follows none."""
    return FollowedFile.objects.filter(cluster=cluster).first()


def _files(now: datetime) -> Sequence[Path]:
    folder = settings.DESCRIPTIONS
    if not folder:
        return []
    try:
        files = files_in(Path(folder))
    except (BadDescription, OSError) as error:
        faults = error.faults if isinstance(error, BadDescription) else {"": [str(error)]}
        _note_faults(folder, faults, now)
        return []
    FollowedFile.objects.filter(name=folder).delete()
    return files


def _follow(file: Path, now: datetime) -> None:
    row = FollowedFile.objects.filter(name=file.name).first()
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return _note_faults(file.name, {"": [str(error)]}, now)
    digest = hashlib.sha256(text.encode()).hexdigest()
    if row is not None and row.digest == digest and row.state != FollowedFile.State.FAULTY:
        is_unchanged = row.audit_id == _newest_entry(row.slug)
        if is_unchanged and now - row.checked_at < AGAIN_AFTER:
            return None
    try:
        description = parse_foreign(text)
        slug = description.cluster.slug
        report = apply_description(_actor(), description, apply=False, prune=True)
        if _is_applied(report):
            prune = settings.DESCRIPTIONS_APPLY == "prune"
            reason = f"{file.name}, sha256 {digest[:12]}"
            apply_description(_actor(), description, apply=True, prune=prune, reason=reason)
            report = apply_description(_actor(), description, apply=False, prune=True)
    except (BadDescription, WeirError) as error:
        return _note_faults(file.name, _faults_of(error), now, digest)
    return _note(file.name, slug, digest, report, now)


def _actor() -> Actor:
    """Return the actor of automatic applications; no row of a user has it, so nobody can log in."""
    return Actor(User(username=NAME, is_superuser=True))


def _is_applied(report: ApplyReport) -> bool:
    if settings.DESCRIPTIONS_APPLY == "0" or not report.changes:
        return False
    is_addition = report.new or report.created or report.changed
    return bool(is_addition) or settings.DESCRIPTIONS_APPLY == "prune"


def _faults_of(error: Exception) -> Mapping[str, Sequence[str]]:
    if isinstance(error, BadDescription):
        return error.faults
    return error.fields if isinstance(error, Invalid) and error.fields else {"": [str(error)]}


def _newest_entry(slug: str) -> int:
    entries = AuditEntry.objects.filter(cluster__slug=slug).order_by("-pk")
    return entries.values_list("pk", flat=True).first() or 0


def _note(name: str, slug: str, digest: str, report: ApplyReport, now: datetime) -> None:
    row = FollowedFile.objects.filter(name=name).first()
    state = FollowedFile.State.OUT_OF_SYNC if report.changes else FollowedFile.State.SYNCED
    values: dict[str, Any] = {"state": state, "changed_by": "", "faults": {}}
    if row is not None and row.state == state:
        values["changed_by"] = row.changed_by
    elif row is not None and state == FollowedFile.State.OUT_OF_SYNC:
        values["changed_by"] = THE_FILE if row.digest != digest else _who(slug, row.audit_id)
    if row is None or row.state != state:
        values["since"] = now
    parts = {verb: {part: names[:_SHOWN] for part, names in getattr(report, verb).items()}
             for verb in ("created", "changed", "removed")}  # fmt: skip
    differences = [asdict(difference) for difference in report.differences[:_SHOWN]]
    values |= {
        "slug": slug,
        "cluster": Cluster.objects.filter(slug=slug).first(),
        "digest": digest,
        "audit_id": _newest_entry(slug),
        "checked_at": now,
        "changes": report.changes,
        "report": parts | {"differences": differences, "left": report.left[:_SHOWN]},
    }
    FollowedFile.objects.update_or_create(
        name=name, defaults=values, create_defaults={"since": now} | values
    )


def _who(slug: str, after: int) -> str:
    """Return who has made the newest change of a cluster after an audit entry, and which."""
    entries = AuditEntry.objects.filter(cluster__slug=slug, pk__gt=after).exclude(
        Q(actor=NAME) | Q(action__startswith="proposal.")
    )
    newest = entries.order_by("-pk").first()
    return "" if newest is None else f"{newest.actor} ({newest.action})"


def _note_faults(
    name: str, faults: Mapping[str, Sequence[str]], now: datetime, digest: str = ""
) -> None:
    state = FollowedFile.State.FAULTY
    row = FollowedFile.objects.filter(name=name).first()
    texts = {place[:_LONGEST]: [text[:_LONGEST] for text in messages[:_SHOWN]]
             for place, messages in list(faults.items())[:_SHOWN]}  # fmt: skip
    since = now if row is None or row.state != state else row.since
    values = {
        "state": state, "since": since, "checked_at": now, "faults": texts, "digest": digest,
        "changed_by": THE_FILE, "changes": 0, "report": {},
    }  # fmt: skip
    if row is not None:
        values["audit_id"] = _newest_entry(row.slug)
    FollowedFile.objects.update_or_create(name=name, defaults=values)
