"""TLS, certificates of clients, and logins by SASL: the settings of a source against a gateway."""

import json
import ssl
import subprocess
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Final
from urllib.parse import parse_qs

import pytest

from controlplane.wire.errors import LogUnavailable
from controlplane.wire.topics import clients
from controlplane.wire.topics.base import BadSource
from controlplane.wire.topics.clients import (
    access_to,
    consumer_of,
    ends_of,
    messages_between,
    partitions_of,
    send_message,
)
from controlplane.wire.topics.places import Place
from controlplane.wire.topics.source import TopicSource
from tests.support.destinations import list_destinations
from tests.support.gateway import Login, running_gateway
from tests.support.topics import create_topic

VALUE: Final = b'{"at": 1}'


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a certificate of 127.0.0.1 that signs itself, and its key."""
    folder = tmp_path_factory.mktemp("certificate")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out",
         "cert.pem", "-days", "2", "-subj", "/CN=localhost", "-addext",
         "subjectAltName=DNS:localhost,IP:127.0.0.1"],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    return folder


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch, certificate: Path) -> None:
    """A client that is refused gives up soon; the site has secrets by their names."""
    monkeypatch.setattr(clients, "TIMEOUT_S", 3.0)
    monkeypatch.setenv("WEIR_TOPIC_SECRET_CA_FILE", str(certificate / "cert.pem"))
    monkeypatch.setenv("WEIR_TOPIC_SECRET_KEY_FILE", str(certificate / "key.pem"))
    monkeypatch.setenv("WEIR_TOPIC_SECRET_RIGHT", "hidden-value")
    monkeypatch.setenv("WEIR_TOPIC_SECRET_WRONG", "other-value")


def exchanged(source: TopicSource) -> bytes | None:
    """Write a message to the first partition and read it again."""
    _, offset = send_message(source, VALUE, b"k", 0)
    consumer = consumer_of(source, "g")
    try:
        assert partitions_of(consumer, source.topic) == [0, 1]
        place = Place(source.topic, 0)
        ends = ends_of(consumer, [place])
        (message,) = messages_between(consumer, {place: (offset, ends[place][1])}, 1 << 20)
        return message.value()
    finally:
        consumer.close()


def refused(source: TopicSource) -> bool:
    with pytest.raises(LogUnavailable) as error:
        exchanged(source)
    assert "value" not in str(error.value)
    return True


# By day SCRAM is used over TLS.
@pytest.mark.parametrize(
    "mechanism",
    [
        "PLAIN",
        pytest.param("SCRAM-SHA-256", marks=pytest.mark.nightly("access")),
        pytest.param("SCRAM-SHA-512", marks=pytest.mark.nightly("access")),
    ],
)
def test_a_client_logs_in_by_sasl_with_a_secret_by_its_name(mechanism: str) -> None:
    with running_gateway(login=Login(mechanism, "weir", "hidden-value")) as (address, _):
        options = {
            "security.protocol": "SASL_PLAINTEXT", "sasl.mechanisms": mechanism,
            "sasl.username": "weir",
        }  # fmt: skip
        right = TopicSource(address, "t", options=options, secrets={"sasl.password": "right"})
        create_topic(address, "t", 2, **access_to(right))
        assert exchanged(right) == VALUE
        wrong = TopicSource(address, "t", options=options, secrets={"sasl.password": "wrong"})
        assert refused(wrong)
        assert refused(TopicSource(address, "t"))


@contextmanager
def token_endpoint(login: str, token: str) -> Iterator[str]:
    """Yield the URL of an endpoint that gives a token for a client's credentials."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            expected = "Basic " + b64encode(login.encode()).decode()
            is_right = form == {"grant_type": ["client_credentials"], "scope": ["kafka"]}
            is_right = is_right and self.headers["Authorization"] == expected
            answer = json.dumps({"access_token": token, "expires_in": 300}).encode()
            self.send_response(200 if is_right else 401)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            """Write no log."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/token"
        server.shutdown()


def test_a_client_logs_in_by_a_token_for_its_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """The site lists the endpoint; the credentials are the client's, by the name of a secret."""
    with (
        token_endpoint("we%2Fir:hidden-value", "a.b.c") as url,
        running_gateway(login=Login("OAUTHBEARER", "", "a.b.c")) as (address, _),
    ):
        options = {
            "security.protocol": "SASL_PLAINTEXT", "sasl.mechanisms": "OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url": url, "sasl.oauthbearer.client.id": "we/ir",
            "sasl.oauthbearer.scope": "kafka",
        }  # fmt: skip
        secrets = {"sasl.oauthbearer.client.secret": "right"}
        right = TopicSource(address, "t", options=options, secrets=secrets)
        assert right.refusals().keys() == {"options"}
        assert refused(right)
        list_destinations(monkeypatch, url.removesuffix("/token"))
        assert right.refusals() == {}
        monkeypatch.setattr(clients, "TIMEOUT_S", 30.0)
        create_topic(address, "t", 2, **access_to(right))
        assert exchanged(right) == VALUE
        monkeypatch.setattr(clients, "TIMEOUT_S", 3.0)
        assert refused(replace(right, secrets={**secrets, next(iter(secrets)): "wrong"}))
    for name in ("sasl.oauthbearer.token.endpoint.url", "sasl.oauthbearer.client.id"):
        with pytest.raises(BadSource, match="options"):
            replace(right, options={key: text for key, text in options.items() if key != name})
    with pytest.raises(BadSource, match="secrets"):
        replace(right, secrets={})


@pytest.mark.parametrize("has_certificate", [False, True])
def test_a_client_verifies_the_broker_and_shows_its_certificate(
    certificate: Path, *, has_certificate: bool
) -> None:
    """TLS with the CA of the site, also with a certificate of the client and a login over it."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    if has_certificate:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(certificate / "cert.pem")
    login = None if has_certificate else Login("SCRAM-SHA-512", "weir", "hidden-value")
    options = {"security.protocol": "SSL" if has_certificate else "SASL_SSL"}
    secrets = {"ssl.ca.pem": "ca"}
    if has_certificate:
        own = {"ssl.certificate.pem": "ca", "ssl.key.pem": "key"}
    else:
        options |= {"sasl.mechanisms": "SCRAM-SHA-512", "sasl.username": "weir"}
        own = {"sasl.password": "right"}
    with running_gateway(context, login) as (address, _):
        right = TopicSource(address, "t", options=options, secrets=secrets | own)
        create_topic(address, "t", 2, **access_to(right))
        assert exchanged(right) == VALUE
        assert refused(TopicSource(address, "t", options=options, secrets=own)), "unknown CA"
        if has_certificate:
            assert refused(TopicSource(address, "t", options=options, secrets=secrets))
