"""The tasks of the help page: what operators want to do, and the page where they do it."""

from dataclasses import dataclass
from typing import Final

from django.urls import reverse

from controlplane.models import Cluster


@dataclass(frozen=True)
class HelpTask:
    """A question with its answer; `link`: the label of its page, `url`: "" without a cluster."""

    question: str
    answer: str
    link: str
    url: str


# Question, answer, label of the link, page, and what follows its address.
_TASKS: Final = (
    ("find out why a cluster is slow?",
     "Select Explain beside whatever is red: the likely cause is the first sentence.",
     "Explain the latency", "cluster", "?explain=measure:latency_p95"),
    ("balance the load, or send fewer copies of records?",
     "Request a plan and review it; nothing moves before a person approves it.",
     "Request plan", "proposals", "#request"),
    ("revert a plan?",
     "Open its proposal: Roll back moves everything back, and shows its cost before.",
     "Proposals", "proposals", "?filter=state:done"),
    ("send my own records?",
     "Declare a stream from a sample. Its page then shows a command with a token.",
     "Declare a stream", "stream-new", ""),
    ("write a query?",
     "Name its streams, aggregates and window. Preview shows results before you submit it.",
     "New query", "query-new", ""),
    ("read results by SQL, or in another tool?",
     "Each query is a view: run a statement, download its rows, or create a connection string.",
     "Results", "sql", ""),
    ("find records that are missing in results?",
     "The page of a stream counts dead letters and late records, that of a query dropped ones.",
     "Dead letters", "dead-letters", ""),
    ("keep latency low in an overload?",
     "Enable a shedding plan: in an overload, it drops what costs the least quality.",
     "Shedding", "shedding", ""),
    ("change a limit, or who approves plans?",
     "Both are in the policy of the cluster; each change can be reverted.",
     "Policy", "policy", "#section-watch"),
    ("stop automatic plans for a while?",
     "Add a blackout, or exclude single queries, nodes and streams from plans.",
     "Blackouts", "policy", "#blackouts"),
    ("see why Weir does nothing?",
     "Each monitor has its last decision with the number and the limit that decided.",
     "Decisions", "decisions", ""),
    ("receive alerts?",
     "Add a webhook: a chat channel, a pager or a script receives signed messages.",
     "Webhooks", "webhooks", None),
    ("use Weir from a script?",
     "Create a token. The command weir and the API have all functions of the pages.",
     "Tokens", "tokens", None),
)  # fmt: skip
_OF_OPERATORS: Final = ("stream-new", "query-new")


def tasks_of(cluster: Cluster | None, *, may_operate: bool) -> list[HelpTask]:
    """Return the tasks with links to the pages of a cluster, and to those of the site."""
    return [
        HelpTask(question, answer, link, _url(page, rest, cluster))
        for question, answer, link, page, rest in _TASKS
        if may_operate or page not in _OF_OPERATORS
    ]


def _url(page: str, rest: str | None, cluster: Cluster | None) -> str:
    """Return an address; `rest` is None for a page of the site."""
    if rest is None:
        return reverse(page)
    return "" if cluster is None else f"{reverse(page, args=[cluster.slug])}{rest}"
