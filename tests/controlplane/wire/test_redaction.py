"""No text has a secret after the redaction, and an ordinary text stays as it is."""

import re
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

import workers.attach.redaction as shipped
from controlplane.wire import redaction
from controlplane.wire.redaction import HIDDEN, without_password

# Texts around a secret, which stands at S.
FORMS: Final = (
    "jdbc:postgresql://h/db?user=u&password=S",
    "jdbc:postgresql://h/db?password=S&user=u",
    "jdbc:sqlserver://h:1433;databaseName=d;user=u;password=S;encrypt=true",
    "jdbc:sqlserver://h;PASSWORD={S};user=u",
    "jdbc:oracle:thin:scott/S@//h:1521/svc",
    "jdbc:mysql://address=(host=h)(user=u)(password=S)/db",
    "jdbc:snowflake://h/?private_key_pwd=S",
    "redis://:S@h:6379/0",
    "kafka://me:S@a:9092,b:9092/topic?lost=skip",
    "mongodb+srv://me:S@h/db",
    "amqps://me:S@h//",
    "https://S@git.example/repo",
    "https%3A%2F%2Fu%3AS%40h%2Fp",
    "callback%3Fuser%3Du%26password%3DS%26x%3D1",
    "https://a.blob.core.windows.net/c?sv=2024&sig=S&se=1",
    "https://s3.example/b/k?X-Amz-Credential=S&X-Amz-Date=1",
    "https://s3.example/b/k?X-Amz-Signature=S",
    "https://api.example/v1?key=S&q=1",
    "https://hooks.slack.com/services/T0/B0/S",
    "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=S==;EndpointSuffix=x",
    "Endpoint=sb://h/;SharedAccessKeyName=n;SharedAccessKey=S=",
    "fs.azure.account.key.a.dfs.core.windows.net=S",
    "spark.hadoop.fs.s3a.secret.key=S",
    "(spark.hadoop.fs.s3a.access.key,S)",
    "Map(password -> S, user -> u)",
    "{'sasl.password': 'S', 'a': 1}",
    '{"password": "S", "user": "u"}',
    '{\\"password\\": \\"S\\", \\"user\\": \\"u\\"}',
    '{"auth": {"client_secret":"S"}}',
    'sasl.jaas.config=org.apache.PlainLoginModule required username="u" password="S";',
    'sasl.jaas.config=org.apache.ScramLoginModule required username=u password=S;',
    '"kafka.sasl.jaas.config": "org.Plain required username=\\"u\\" password=\\"S\\";"',
    "Authorization: Bearer S",
    "Authorization: Basic S",
    "authorization=Bearer S",
    "curl -H 'X-Api-Key: S' https://h",
    "the server refused Bearer S, and closed",
    "Cookie: sessionid=S",
    "aws_secret_access_key = S",
    "AWS_SECRET_ACCESS_KEY=S",
    "password: S",
    "user=u password='S' host=h",
    "--password S --user u",
    "<password>S</password>",
    "<name>fs.s3a.secret.key</name><value>S</value>",
    "ssl.truststore.password=S",
    "refresh_token=S",
    "KafkaV2[Subscribe[orders], sasl.password=S]",
    "psycopg.OperationalError: connection to postgresql://u:S@h/db failed: no route",
)  # fmt: skip
ORDINARY: Final = (
    "",
    "The password is wrong",
    "unexpected token: )",
    "Expecting property name enclosed in double quotes: line 1 column 2",
    "key=stream, keys=3",
    "partition_key 3 of key (a, b)",
    "abfss://container@account.dfs.core.windows.net/path",
    "s3a://bucket/path/part-0000.parquet",
    "KafkaV2[Subscribe[orders]]",
    "FileStreamSource[file:/data/in]",
    "https://h:80/a@b?x=1",
    "http://[::1]:8080/a@b",
    "http://h:8080/a?user=u&page=2#top",
    "Bearer authentication is needed",
    "Basic authentication",
    "max_tokens=5",
    "write to a@b.example: failed",
    "jdbc:postgresql://h:5432/db?user=u&ssl=true",
    "compass=1, bypass=2",
    "ValueError: could not convert string to float: 'x'",
    "the token of Weir is empty or no token",
    "redis://127.0.0.1:6379/0",
    "user me@example.org, window: 60 s, key: stream",
    "2026-01-01T00:00:00.000Z: batch 3 took 5,000 ms",
)
# Any printable characters that stand unquoted in all of the forms.
SECRETS: Final = st.text(
    st.characters(codec="utf-8", categories=("L", "N"), include_characters="!$*+-.~_^|"),
    min_size=4, max_size=30,
).filter(lambda secret: not any(secret in form.replace("S", "") for form in FORMS))  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_a_form_hides_its_secret_and_keeps_the_rest(form: str) -> None:
    shown = without_password(_placed(form, "hunter-2-secret"))
    assert "hunter-2" not in shown
    assert HIDDEN in shown
    assert without_password(shown) == shown


def _placed(form: str, secret: str) -> str:
    """Return the form with a secret at the S that is a word of its own."""
    return re.sub(r"(?<![A-Za-z])S(?![A-Za-z])|(?<=%3[AD])S(?=%)", lambda _: secret, form)


@given(st.sampled_from(FORMS), SECRETS, st.sampled_from(ORDINARY), st.sampled_from(ORDINARY))
def test_no_secret_is_left_in_any_text(form: str, secret: str, before: str, after: str) -> None:
    """Errors quote addresses within sentences."""
    shown = without_password(f"{before}\n{_placed(form, secret)}\n{after}")
    assert secret not in shown


@pytest.mark.parametrize("text", ORDINARY)
def test_an_ordinary_text_stays(text: str) -> None:
    assert without_password(text) == text


@given(st.lists(st.sampled_from(ORDINARY), max_size=6))
def test_ordinary_texts_stay_together(texts: list[str]) -> None:
    text = "\n".join(texts)
    assert without_password(text) == text


@given(st.text(st.sampled_from("pasword:/@=&;?%{}<>\"'\\ \n-()1S"), max_size=400))
def test_any_text_is_taken(text: str) -> None:
    without_password(text)


def test_a_private_key_is_hidden() -> None:
    text = "x -----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY----- y"
    shown = without_password(text)
    assert "MIIE" not in shown
    assert shown.endswith("-----END RSA PRIVATE KEY----- y")


def test_the_function_of_jobs_and_that_of_weir_are_one_file() -> None:
    """A foreign job gets the package workers.attach alone; a copy of it would become another."""
    assert Path(str(redaction.__file__)).resolve() == Path(str(shipped.__file__)).resolve()
