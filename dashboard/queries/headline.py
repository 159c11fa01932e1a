"""The headline of the list of queries."""

from django.urls import reverse

from controlplane.catalog.queries import state_counts
from controlplane.models import Cluster
from controlplane.numbers import counted
from dashboard import thresholds
from dashboard.frame.headline import Headline


def list_headline(cluster: Cluster) -> Headline:
    """Return how many queries run, and how many failed or wait for a node."""
    counts = state_counts(cluster)
    running, failed, pending = (counts[name] for name in ("running", "failed", "pending"))
    runs = f"{counted(running, 'queries')} {'runs' if running == 1 else 'run'}"
    wait = "waits" if pending == 1 else "wait"
    waits = f"{counted(pending, 'queries')} {wait} for a node." if pending else ""
    if failed:
        what = f"{counted(failed, 'queries')} failed; {runs}"
        link = f"{reverse('queries', args=[cluster.slug])}?filter=state:failed"
        return Headline(what, waits, thresholds.BAD, link=link, link_title="Show failed queries")
    if not running and not pending:
        return Headline("No query is live", "Ended queries stay listed for some hours.")
    return Headline(runs, waits, thresholds.WARN if pending else thresholds.GOOD)
