"""The form of a topic: its brokers, its name, and where reading starts.

Settings with secrets are declared by the API, or by a cluster description.
"""

from collections.abc import Mapping
from typing import Any, Final

from controlplane.access.roles import Actor
from controlplane.models import Cluster
from controlplane.topology.topics.brokers import list_topics, sample_topic
from dashboard.streams.schema_forms import form_of_post, form_of_sample

FIELDS: Final = ("servers", "topic", "start", "on_loss")
# Messages of a sample that the page shows.
_SHOWN: Final = 5


def source_in(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the source of a form as JSON values, an empty one without brokers."""
    given = {name: str(values.get(name, "")).strip() for name in FIELDS}
    return {name: text for name, text in given.items() if text} if given["servers"] else {}


def topics_context(actor: Actor, cluster: Cluster, values: Any) -> dict[str, Any]:
    """Return the topics of the brokers in a form. Raises as `list_topics`."""
    row = {"servers": source_in(values).get("servers", "")}
    return {"form": form_of_post(values), "topics": list_topics(actor, cluster, row)}


def sample_context(actor: Actor, cluster: Cluster, values: Any) -> dict[str, Any]:
    """Return the columns that the newest messages of a topic suggest. Raises as `sample_topic`."""
    source = {"servers": "", "topic": ""} | source_in(values)
    sample = sample_topic(actor, cluster, source)
    return {
        "form": form_of_sample(sample.proposed),
        "sampled": sample.proposed,
        "messages_of_topic": sample.messages[:_SHOWN],
    }
