"""The headline of a node: its finding, and the likely cause."""

from controlplane import numbers
from controlplane.explain import Explanation
from controlplane.policies.grades import Grade
from dashboard.frame.headline import NO_CAUSE, Headline


def headline_of(explanation: Explanation) -> Headline:
    """Return the headline of an explained node."""
    finding = explanation.finding
    what, grade = explanation.headline, str(finding.grade)
    if finding.grade == Grade.BAD or (finding.grade == Grade.WARN and explanation.ranked):
        return Headline(what, grade=grade).explained(explanation.ranked, NO_CAUSE)
    if finding.value is None:
        return Headline(what, "First figures appear with the first micro-batch.", grade)
    limit = f": at most {numbers.compact(finding.limit)} deliveries/s" if finding.limit else ""
    return Headline(what, f"No limit of this node is exceeded{limit}.", grade)
