"""What an upgrade to this release would meet: migrations, checkpoints, plans in flight."""

import re
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.db import connections
from django.db.migrations.executor import MigrationExecutor

from controlplane.installation import env
from controlplane.models import Cluster, Proposal
from controlplane.wire.generation import STATE_FORMAT


@dataclass(frozen=True)
class UpgradeCheck:
    """Migrations that would run, checkpoints of another format, and executions in flight."""

    migrations: list[str]
    checkpoints: list[str]
    executions: list[str]

    @property
    def is_ready(self) -> bool:
        """Return whether nothing is lost or interrupted by an upgrade now."""
        return not self.checkpoints and not self.executions


def check_upgrade() -> UpgradeCheck:
    """Compare this release with the present database and checkpoints; nothing is changed."""
    connection = connections["default"]
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    names = [f"{migration.app_label}.{migration.name}" for migration, _ in plan]
    slugs: list[str] = []
    executions = []
    if Proposal._meta.db_table in connection.introspection.table_names():  # noqa: SLF001 - public
        # Columns that every release has: the models may have newer ones.
        slugs += Cluster.objects.values_list("slug", flat=True)
        active = Proposal.objects.filter(state__in=Proposal.ACTIVE).order_by("pk")
        executions = [
            f"{slug}: proposal {pk} is {state}"
            for slug, pk, state in active.values_list("cluster__slug", "pk", "state")
        ]
    return UpgradeCheck(names, _other_checkpoints(slugs), executions)


def _other_checkpoints(slugs: list[str]) -> list[str]:
    folder = Path(env.text("WEIR_CHECKPOINTS", str(settings.DATA_DIR / "checkpoints")))
    checkpoints = []
    names = [path.name for path in folder.iterdir() if path.is_dir()] if folder.is_dir() else []
    for slug in slugs:
        # Those of a log elsewhere end with its mark (workers.agent.driver).
        pattern = re.compile(rf"{re.escape(slug)}-(\d+)(?:-[0-9a-f]{{8}})?")
        formats = {match[1] for name in names if (match := pattern.fullmatch(name))}
        if formats and str(STATE_FORMAT) not in formats:
            checkpoints.append(
                f"{slug}: format {', '.join(sorted(formats))}, this release {STATE_FORMAT}"
            )
    return checkpoints
