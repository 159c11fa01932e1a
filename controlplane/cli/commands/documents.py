"""Input files (a path, or standard input), and weir export, diff, apply and schema."""

import json
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

from controlplane.cli.client.api import cluster_path
from controlplane.cli.client.connection import api_of
from controlplane.cli.codes import DIFFERENT, CliError, ExitCode
from controlplane.cli.input_files import text_of
from controlplane.cli.output import print_json, print_sentence
from controlplane.cluster_spec.document import ClusterDescription, json_schema
from controlplane.cluster_spec.files import files_in
from controlplane.cluster_spec.report import ApplyReport, Difference
from controlplane.cluster_spec.text import as_yaml, parse_description


def description_in(path: Path) -> ClusterDescription:
    """Return the description in a file. Raises `BadDescription` and what `text_of` does."""
    return parse_description(text_of(path))


def export_cluster(given: Namespace) -> None:
    """Print the description of a cluster, as YAML or JSON."""
    path = f"{cluster_path(given)}/description"
    text = api_of(given).answer("GET", path, {"measures": given.measures}).text
    sys.stdout.write(text if given.json else as_yaml(parse_description(text)))


def diff(given: Namespace) -> int:
    """Print what applying files would change; return the exit code."""
    changes = sum(report.changes for report in _apply_each(given, is_trial=True))
    return DIFFERENT if changes else ExitCode.DONE


def apply(given: Namespace) -> None:
    """Apply the descriptions of files; nothing is changed unless a trial of each succeeds."""
    _apply_each(given, is_trial=False)


def _apply_each(given: Namespace, *, is_trial: bool) -> list[ApplyReport]:
    texts = {path: text_of(path) for file in given.files for path in files_in(file)}
    reports = _post_each(given, texts, apply=False)
    slugs = Counter(report.cluster for report in reports)
    if twice := [slug for slug, count in slugs.items() if count > 1]:
        text = f"several files describe {', '.join(twice)}"
        raise CliError(ExitCode.WRONG, text, advice="keep one file per cluster")
    if not is_trial:
        reports = _post_each(given, texts, apply=True)
    if given.json:
        print_json([asdict(report) for report in reports])
    for report in () if given.json else reports:
        for line in _lines(report):
            print_sentence(line)
    return reports


def _post_each(given: Namespace, texts: Mapping[Path, str], *, apply: bool) -> list[ApplyReport]:
    """Return the reports of all files. Raises `CliError` with the faults of all files."""
    query = {"apply": apply, "prune": given.prune, "reason": getattr(given, "reason", "")}
    reports, refusals = [], []
    for path, text in texts.items():
        try:
            values = api_of(given).answer("POST", "/descriptions", query, text.encode()).value
        except CliError as refused:
            where = [refused.what, *refused.where]
            named = where if len(texts) == 1 else [f"{path}: {line}" for line in where]
            refusals.append(replace(refused, what=named[0], where=named[1:]))
            continue
        differences = [Difference(**row) for row in values.pop("differences")]
        reports.append(ApplyReport(**values, differences=differences))
    if refusals:
        rest = [line for refused in refusals[1:] for line in (refused.what, *refused.where)]
        raise replace(refusals[0], where=[*refusals[0].where, *rest])
    return reports


def print_schema(given: Namespace) -> None:
    """Print the JSON schema of a description."""
    del given
    print_json(json_schema())


def _lines(report: ApplyReport) -> list[str]:
    lines = [f"{report.cluster} is {'new' if report.new else 'there already'}"]
    verbs = {"new": report.created, "changed": report.changed, "removed": report.removed}
    for verb, parts in verbs.items():
        for part, names in parts.items():
            few = ", ".join(names[:3]) + (", ..." if len(names) > len(names[:3]) else "")
            lines.append(f"  {verb:<8}{len(names):>7,} {part}: {few}")
    lines += [_difference(row) for row in report.differences]
    if report.placed:
        lines.append(f"  placed  {report.placed:>7,} queries, as described")
    lines += [f"  left: {reason}" for reason in report.left]
    if not report.changes:
        return [*lines, "nothing to change"]
    return [*lines, "done" if report.applied else "nothing was done: weir apply does it"]


def _difference(row: Difference) -> str:
    place = " ".join(filter(None, (row.part, row.name, row.field)))
    values = (json.dumps(value, ensure_ascii=False) for value in (row.before, row.after))
    return f"    {place}: {' -> '.join(values)}"
