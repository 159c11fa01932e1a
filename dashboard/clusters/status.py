"""The state of a cluster's Spark application as a sentence, with its cause."""

from typing import Final

from controlplane.models import Cluster

# The titles of states other than running.
_STATES: Final = {
    Cluster.State.CRASH_LOOP: "The Spark application fails repeatedly",
    Cluster.State.STUCK: "The Spark application makes no progress",
    Cluster.State.NEEDS_DECISION: "An incident needs a decision",
    Cluster.State.FAILED: "The Spark application failed",
    Cluster.State.STARTING: "The Spark application starts",
    Cluster.State.CATCHING_UP: "The cluster catches up with its backlog",
    Cluster.State.DEGRADED: "The cluster runs with an error",
}
FIRST_FIGURES: Final = "Figures appear with the first micro-batch, 20 to 40 s after the start."


def state_title(cluster: Cluster) -> tuple[str, str]:
    """Return the sentence about a state other than running and stopped, and its cause."""
    cause = cluster.state_detail
    if cluster.state == Cluster.State.STARTING:
        cause = f"{cause}. {FIRST_FIGURES}" if cause else FIRST_FIGURES
    return _STATES[Cluster.State(cluster.state)], _sentence(cause)


def _sentence(text: str) -> str:
    """Return the text as a sentence, with a capital and a full stop."""
    if not text:
        return ""
    return f"{text[:1].upper()}{text[1:]}" + ("" if text.endswith((".", ")", "!")) else ".")
