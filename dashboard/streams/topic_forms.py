"""The form of topics: brokers and their login, name or pattern, format, where reading starts."""

from collections.abc import Mapping
from typing import Any, Final

from controlplane.access.roles import Actor
from controlplane.explain.drafts.messages import sample
from controlplane.models import Cluster
from controlplane.topology.topics.brokers import list_topics
from controlplane.wire.topics.source import MessageFormat
from controlplane.wire.topics.tokens import CLIENT, CLIENT_SECRET, ENDPOINT, MECHANISM, SCOPE
from dashboard.streams.schema_forms import form_of_post, form_of_sample

_FIELDS: Final = (
    "servers", "topic", "topic_pattern", "start", "on_loss", "format", "registry", "definition",
    "message", "envelope", "updates", "deletes", "produce",
)  # fmt: skip
# Settings of the client, and those that are names of secrets, by their field of the form.
_OPTIONS: Final = {
    "security_protocol": "security.protocol", "sasl_mechanisms": "sasl.mechanisms",
    "sasl_username": "sasl.username", "token_endpoint": ENDPOINT, "client_id": CLIENT,
    "token_scope": SCOPE,
}  # fmt: skip
_SECRETS: Final = {
    "sasl_password": "sasl.password", "ssl_ca": "ssl.ca.pem", "ssl_certificate":
    "ssl.certificate.pem", "ssl_key": "ssl.key.pem", "registry_login": "registry",
    "client_secret": CLIENT_SECRET,
}  # fmt: skip
PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", MECHANISM)
FORMATS: Final = tuple(MessageFormat)
# Values that a form has without a choice of the person.
_DEFAULTS: Final = {"format": "json", "envelope": "none", "security_protocol": "PLAINTEXT"}
# Messages of a sample that the page shows.
_SHOWN: Final = 5


def fields_in(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the values of a form by field, without empty ones and defaults."""
    names = (*_FIELDS, *_OPTIONS, *_SECRETS)
    given = {name: str(values.get(name, "")).strip() for name in names}
    if not given["servers"]:
        return {}
    return {name: text for name, text in given.items() if text and _DEFAULTS.get(name) != text}


def source_in(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the source of a form as JSON values, an empty one without brokers."""
    fields = fields_in(values)
    source: dict[str, Any] = {name: fields[name] for name in _FIELDS if name in fields}
    for part, names in (("options", _OPTIONS), ("secrets", _SECRETS)):
        if given := {setting: fields[name] for name, setting in names.items() if name in fields}:
            source[part] = given
    return source


def topics_context(actor: Actor, cluster: Cluster, values: Any) -> dict[str, Any]:
    """Return the topics of the brokers in a form. Raises as `list_topics`."""
    source = {"servers": ""} | source_in(values)
    names = ("servers", "topic_pattern", "options", "secrets")
    row = {name: source[name] for name in names if name in source}
    return {"form": form_of_post(values), "topics": list_topics(actor, cluster, row)}


def sample_context(actor: Actor, cluster: Cluster, values: Any) -> dict[str, Any]:
    """Return the columns that the newest messages of a topic suggest. Raises as `sample`."""
    return sampled_context(actor, cluster, {"servers": ""} | source_in(values))


def sampled_context(actor: Actor, cluster: Cluster, source: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns that the newest records of a source suggest. Raises as `sample`."""
    sampled = sample(actor, cluster, source)
    return {
        "form": form_of_sample(sampled.proposed),
        "sampled": sampled.proposed,
        "messages_of_topic": sampled.messages[:_SHOWN],
    }
