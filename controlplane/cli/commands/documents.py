"""Input files (a path, or standard input), and weir export, import and schema."""

import sys
from argparse import Namespace
from pathlib import Path

from controlplane.cli.client.connection import api_of
from controlplane.cli.client.paths import cluster_path
from controlplane.cli.input_files import text_of
from controlplane.cli.output import print_json, print_sentence
from controlplane.cluster_spec.document import ClusterDescription, json_schema
from controlplane.cluster_spec.report import ImportReport
from controlplane.cluster_spec.text import as_yaml, parse_description


def description_in(path: Path) -> ClusterDescription:
    """Return the description in a file. Raises `BadDescription` and what `text_of` does."""
    return parse_description(text_of(path))


def export_cluster(given: Namespace) -> None:
    """Print the description of a cluster, as YAML or JSON."""
    path = f"{cluster_path(given)}/description"
    text = api_of(given).answer("GET", path, {"measures": given.measures}).text
    sys.stdout.write(text if given.json else as_yaml(parse_description(text)))


def import_cluster(given: Namespace) -> None:
    """Import a description, or print the changes it would make."""
    query = {"apply": given.apply, "reason": given.reason}
    body = text_of(given.file).encode()
    values = api_of(given).answer("POST", "/descriptions", query, body).value
    if given.json:
        print_json(values)
        return
    for line in _lines(ImportReport(**values)):
        print_sentence(line)


def print_schema(given: Namespace) -> None:
    """Print the JSON schema of a description."""
    del given
    print_json(json_schema())


def _lines(report: ImportReport) -> list[str]:
    lines = [f"{report.cluster} is {'new' if report.new else 'there already'}"]
    for verb, parts in (("new", report.created), ("changed", report.changed)):
        for part, names in parts.items():
            few = ", ".join(names[:3]) + (", ..." if len(names) > len(names[:3]) else "")
            lines.append(f"  {verb:<8}{len(names):>7,} {part}: {few}")
    if report.placed:
        lines.append(f"  placed  {report.placed:>7,} queries, as described")
    lines += [f"  left: {reason}" for reason in report.left]
    if not report.changes:
        return [*lines, "nothing to change"]
    return [*lines, "done" if report.applied else "nothing was done: --apply does it"]
