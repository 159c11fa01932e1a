"""The headline of a node: its finding, and the likely cause."""

from controlplane import numbers
from dashboard.explain.rows import ExplanationRow
from dashboard.frame.headline import Headline


def headline_of(row: ExplanationRow) -> Headline:
    """Return the headline of an explained node."""
    return Headline(row.value.headline, _why(row), str(row.value.finding.grade))


def _why(row: ExplanationRow) -> str:
    finding, cause = row.value.finding, row.value.cause
    if cause is not None:
        return cause.text
    if finding.value is None:
        return "First figures appear with the first micro-batch."
    limit = f": at most {numbers.compact(finding.limit)} records/s" if finding.limit else ""
    return f"No limit of this node is exceeded{limit}."
