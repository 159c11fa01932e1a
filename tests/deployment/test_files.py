"""The files of `deploy/`: their formats, and that what they name exists in Weir."""

import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import promql_parser
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from controlplane.cli.parser import parser
from controlplane.installation.env import ROOT
from controlplane.processes.runtime.children import commands_apart

DEPLOY: Final = ROOT / "deploy"
COMPOSE: Final[dict[str, Any]] = yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text())
OURS: Final = {name: row for name, row in COMPOSE["services"].items() if "weir" in row["image"]}
PROCESSES: Final = commands_apart(Path("/data"), "0.0.0.0", 8000).keys()
METRIC: Final = re.compile(r"\bweir_[a-z0-9_]+")
# What Prometheus appends to the name of a family.
SUFFIX: Final = re.compile(r"_(total|bucket|count|sum)$")


def run(*command: str | Path) -> str:
    """Run a program, which must succeed, and return what it printed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def beside_python(name: str) -> Path:
    return Path(sys.executable).parent / name


def test_hadolint_has_no_objection_to_the_dockerfile() -> None:
    assert run(beside_python("hadolint"), DEPLOY / "image" / "Dockerfile") == ""


def test_the_last_stage_has_a_user_a_health_check_and_no_compiler() -> None:
    last = (DEPLOY / "image" / "Dockerfile").read_text().rpartition("\nFROM ")[2]
    assert "\nUSER 10001:10001\n" in last
    assert "\nHEALTHCHECK " in last
    assert last.startswith("python:3.12-slim")
    assert not re.search(r"apt-get|pip install|gcc|build-essential", last)


def test_the_image_has_the_files_of_which_the_wheel_is_built() -> None:
    lines = (DEPLOY / "image" / "Dockerfile.dockerignore").read_text().splitlines()
    sent = {line[1:] for line in lines if line.startswith("!")}
    assert sent >= {"algorithms", "controlplane", "dashboard", "static", "workers"}
    assert sent >= {"pyproject.toml", "README.md", "requirements.lock"}
    assert all((ROOT / name).exists() for name in sent)


def test_the_compose_file_is_of_its_schema() -> None:
    command = beside_python("check-jsonschema"), "--builtin-schema", "vendor.compose-spec"
    run(*command, DEPLOY / "compose" / "compose.yaml")


def test_compose_runs_every_process_apart_and_checks_it() -> None:
    assert OURS.keys() == {*PROCESSES, "migrate"}
    for name, service in OURS.items():
        expected = ["manage", "migrate_all"] if name == "migrate" else ["process", name]
        assert service["command"] == expected
        assert parser(None).parse_args(service["command"]).run.startswith("site.")
        if name not in ("migrate", "web"):
            assert service["healthcheck"]["test"] == ["CMD", "weir", *expected, "--check"]


@pytest.mark.parametrize("name", COMPOSE["services"])
def test_a_container_gains_no_rights(name: str) -> None:
    service = COMPOSE["services"][name]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["read_only"] is (name != "kafka")
    assert "healthcheck" in service or name == "web"
    # Nothing but the web is published to other machines, and that by request only.
    for port in service.get("ports", []):
        assert port.startswith(("127.0.0.1:", "${WEIR_PUBLISH:-127.0.0.1:"))


def test_secrets_are_files_that_the_script_creates_once(tmp_path: Path) -> None:
    script = shutil.copy(DEPLOY / "compose" / "secrets.sh", tmp_path)
    run(script)
    folder = tmp_path / "secrets"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    named = {row["file"] for row in COMPOSE["secrets"].values()}
    assert {f"secrets/{path.name}" for path in folder.iterdir()} == named
    first = {path.name: path.read_text() for path in folder.iterdir()}
    assert first["postgres_password"] in first["database_url"]
    assert first["redis_password"] in first["redis_url"]
    assert len(set(first.values())) == len(first)
    run(script)
    assert {path.name: path.read_text() for path in folder.iterdir()} == first


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
@pytest.mark.parametrize("name", ["weir.service", *(f"weir@{name}.service" for name in PROCESSES)])
def test_systemd_has_no_objection_to_a_unit(name: str, tmp_path: Path) -> None:
    source = DEPLOY / "systemd" / (name if name == "weir.service" else "weir@.service")
    # The program of the unit must exist.
    text = source.read_text().replace("/opt/weir/bin/weir", "/bin/true")
    (tmp_path / name).write_text(text)
    shutil.copy(DEPLOY / "systemd" / "weir.target", tmp_path)
    for folder in (DEPLOY / "systemd").glob("*.d"):
        (tmp_path / folder.name).mkdir()
        for path in folder.iterdir():
            text = path.read_text().replace("/opt/weir/bin/weir", "/bin/true")
            (tmp_path / folder.name / path.name).write_text(text)
    environment = os.environ | {"SYSTEMD_UNIT_PATH": f"{tmp_path}:"}
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(tmp_path / name)],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def expressions() -> Iterator[tuple[str, str]]:
    """Yield the expressions of rules and dashboards with their places."""
    rules = yaml.safe_load((DEPLOY / "prometheus" / "weir.rules.yml").read_text())
    for group in rules["groups"]:
        for rule in group["rules"]:
            yield rule["alert"], rule["expr"]
    for path in sorted((DEPLOY / "grafana" / "dashboards").glob("*.json")):
        dashboard = yaml.safe_load(path.read_text())
        for panel in dashboard["panels"]:
            for target in panel["targets"]:
                yield f"{path.stem}: {panel['title']}", target["expr"]


EXPRESSIONS: Final = dict(expressions())


@pytest.mark.parametrize("place", EXPRESSIONS)
def test_an_expression_is_one_of_prometheus(place: str) -> None:
    promql_parser.parse(EXPRESSIONS[place])


def unknown_metrics(exposition: str) -> set[str]:
    """Return the metrics of rules and dashboards that an answer of GET /metrics does not have."""
    families = {family.name for family in text_string_to_metric_families(exposition)}
    used = {name for expression in EXPRESSIONS.values() for name in METRIC.findall(expression)}
    # Weir sends it after the first verification of the audit log, hourly.
    return {SUFFIX.sub("", name) for name in used} - families - {"weir_audit_intact"}


def test_dashboards_are_found_by_their_names() -> None:
    paths = list((DEPLOY / "grafana" / "dashboards").glob("*.json"))
    read = {path.stem: yaml.safe_load(path.read_text()) for path in paths}
    assert {name: dashboard["uid"] for name, dashboard in read.items()} == {
        name: name for name in ("weir-cluster", "weir-fleet", "weir-query")
    }
