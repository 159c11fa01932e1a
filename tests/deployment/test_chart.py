"""The Helm chart: rendered by Helm's own library, and checked against the API of Kubernetes."""

import json
import stat
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import helm_python
import kubernetes_validate
import pytest
import yaml

from controlplane.cli.main import main
from controlplane.processes.runtime.process_kinds import PROCESSES as KINDS
from tests.deployment.test_files import COMPOSE, DEPLOY, OURS, PROCESSES
from tests.test_dependencies import PROJECT

CHART: Final = DEPLOY / "helm"
FILES: Final = {path.stem: path for path in sorted((CHART / "ci").glob("*.yaml"))}
VALUES: Final = {name: yaml.safe_load(path.read_text()) for name, path in FILES.items()}
KUBERNETES: Final = ("1.29", "1.37")
BELOW: Final = {"WEIR_CHECKPOINTS": "/srv/weir", "WEIR_DATA": "/var/lib/weir"}
SPARK: Final = "spark-on-kubernetes"


@cache
def rendered(name: str) -> tuple[dict[str, Any], ...]:
    """Return the objects of the chart with a file of values."""
    with helm_python.Chart.load(CHART) as chart:
        chart.validate_schema(chart.merge_values(VALUES[name]))
        files = chart.render(VALUES[name], name="weir", namespace="streams")
    texts = (text for path, text in files.items() if path.endswith(".yaml"))
    return tuple(row for text in texts for row in yaml.safe_load_all(text) if row)


def of_kind(name: str, *kinds: str) -> dict[str, dict[str, Any]]:
    return {row["metadata"]["name"]: row for row in rendered(name) if row["kind"] in kinds}


def executor() -> dict[str, Any]:
    """Return the template of an executor's pod."""
    (text,) = of_kind(SPARK, "ConfigMap")["weir-executor"]["data"].values()
    return dict(yaml.safe_load(text))


def pods(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the pods of the processes by their component, with that of the migration."""
    for row in of_kind(name, "Deployment", "StatefulSet", "Job").values():
        template = row["spec"]["template"]
        yield template["metadata"]["labels"]["app.kubernetes.io/component"], template["spec"]
    if name == SPARK:
        yield "executor", executor()["spec"]


def environment(pod: dict[str, Any]) -> dict[str, str]:
    return {row["name"]: row.get("value", "") for row in pod["containers"][0].get("env", [])}


def test_helm_has_no_objection_to_the_chart() -> None:
    found = helm_python.lint(CHART)
    assert [row for row in found["messages"] if "icon" not in row["error"]] == []
    assert len(FILES) == 3


@pytest.mark.parametrize("version", KUBERNETES)
@pytest.mark.parametrize("name", FILES)
def test_every_object_is_of_its_schema(name: str, version: str) -> None:
    for row in (*rendered(name), *([executor()] if name == SPARK else ())):
        kubernetes_validate.validate(row, version, strict=True)


@pytest.mark.parametrize("name", FILES)
def test_pods_run_the_processes_that_compose_runs(name: str) -> None:
    found = {component: pod["containers"][0] for component, pod in pods(name)}
    found.pop("executor", None)
    assert {part: row["args"] for part, row in found.items()} == {
        part: service["command"] for part, service in OURS.items()
    }
    for part, row in found.items():
        if part not in ("migrate", "web"):
            probes = row["livenessProbe"], row["startupProbe"]
            expected = {"command": OURS[part]["healthcheck"]["test"][1:]}
            assert [probe["exec"] for probe in probes] == [expected] * 2


@pytest.mark.parametrize("name", FILES)
def test_processes_have_the_settings_of_compose_and_its_time_to_stop(name: str) -> None:
    for component, pod in pods(name):
        if component == "executor":
            continue
        mounts = {row["mountPath"] for row in pod["containers"][0]["volumeMounts"]}
        given = environment(pod)
        assert given.keys() >= COMPOSE["x-weir"]["environment"].keys()
        for setting, value in given.items():
            if setting.endswith("_FILE"):
                assert value == COMPOSE["x-weir"]["environment"][setting]
            if setting in BELOW:
                assert value.startswith(BELOW[setting])
                assert BELOW[setting] in mounts
        if component != "migrate":
            assert (
                f"{pod['terminationGracePeriodSeconds']}s" == COMPOSE["x-weir"]["stop_grace_period"]
            )


@pytest.mark.parametrize("name", FILES)
def test_a_pod_gains_no_rights_and_writes_to_its_volumes_alone(name: str) -> None:
    for component, pod in pods(name):
        assert pod["securityContext"]["runAsUser"] == 10001
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["automountServiceAccountToken"] is (component == "agent" and name == SPARK)
        volumes = {row["name"] for row in pod["volumes"]}
        for container in (*pod["containers"], *pod["initContainers"]):
            context = container["securityContext"]
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert context["readOnlyRootFilesystem"]
            assert not context["allowPrivilegeEscalation"]
            claimed = {"data"} if component == "agent" else set()
            assert {row["name"] for row in container["volumeMounts"]} <= volumes | claimed


def test_the_database_is_migrated_before_the_processes_of_a_release() -> None:
    (job,) = of_kind("one-agent", "Job").values()
    hooks = job["metadata"]["annotations"]["helm.sh/hook"].split(",")
    assert hooks == ["pre-install", "pre-upgrade"]
    version = str(PROJECT["project"]["version"]).partition(".dev")[0]
    assert yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"] == version
    image = job["spec"]["template"]["spec"]["containers"][0]["image"]
    assert image == COMPOSE["x-weir"]["image"]


def test_processes_that_do_not_take_over_run_once() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    declared = schema["properties"]["processes"]["properties"]
    assert {*declared, "agent"} == set(PROCESSES)
    several = {
        name for name, row in declared.items() if row["properties"]["replicas"]["maximum"] > 1
    }
    assert several == {"web", "sinks"} | ({row.name for row in KINDS if row.has_lease} - {"agent"})


@pytest.mark.parametrize("name", FILES)
def test_only_replicas_have_a_disruption_budget(name: str) -> None:
    replicas = {
        component: row["spec"]["replicas"]
        for component, row in of_kind(name, "Deployment", "StatefulSet").items()
    }
    budgets = of_kind(name, "PodDisruptionBudget")
    assert budgets.keys() == {component for component, number in replicas.items() if number > 1}
    assert all(row["spec"]["maxUnavailable"] == 1 for row in budgets.values())


@pytest.mark.parametrize("name", FILES)
def test_only_the_web_and_spark_accept_connections(name: str) -> None:
    policies = of_kind(name, "NetworkPolicy")
    assert policies["weir"]["spec"].get("ingress") is None
    assert "Ingress" in policies["weir"]["spec"]["policyTypes"]
    selects = policies["weir"]["spec"]["podSelector"]["matchLabels"].items()
    for row in rendered(name):
        if (template := row["spec"].get("template") if "spec" in row else None) is not None:
            assert selects <= template["metadata"]["labels"].items()
    if name == SPARK:
        assert selects <= executor()["metadata"]["labels"].items()
    assert policies.keys() - {"weir"} == {"weir-web"} | ({"weir-spark"} if name == SPARK else set())


def test_drivers_create_executors_that_share_their_checkpoints() -> None:
    agent = dict(pods(SPARK))["agent"]
    template = executor()["spec"]
    conf = dict(word.split("=", 1) for word in environment(agent)["WEIR_SPARK_CONF"].split())
    container, own = template["containers"][0], agent["containers"][0]
    assert conf["spark.kubernetes.container.image"] == container["image"] == own["image"]
    folder, _, file = conf["spark.kubernetes.executor.podTemplateFile"].rpartition("/")
    assert file in of_kind(SPARK, "ConfigMap")["weir-executor"]["data"]
    assert {folder, "/srv/weir"} <= {row["mountPath"] for row in own["volumeMounts"]}
    claims = [
        [row for row in pod["volumes"] if row["name"] == "checkpoints"] for pod in (agent, template)
    ]
    assert claims[0] == claims[1] != []
    (claim,) = of_kind(SPARK, "PersistentVolumeClaim").values()
    assert claims[0][0]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    assert environment(agent)["WEIR_DESTINATIONS"].startswith("k8s://")
    (binding,) = of_kind(SPARK, "RoleBinding").values()
    assert binding["subjects"][0]["name"] == agent["serviceAccountName"]
    assert of_kind("shards", "Role", "ServiceAccount", "ConfigMap") == {}


@pytest.mark.parametrize(
    "wrong",
    [
        {"agent": {"replicas": 2}},
        {"spark": {"kubernetes": True}},
        {"processes": {"worker": {"replicas": 2}}},
        {"processes": {"other": {"replicas": 1}}},
        {"ingress": {"enabled": True}},
        {"spark": {"conf": {"executor.memory": "2g"}}},
        {"secrets": "weir"},
    ],
)
def test_values_that_cannot_work_are_refused(wrong: dict[str, Any]) -> None:
    with helm_python.Chart.load(CHART) as chart:
        merged = chart.merge_values(wrong)
        with pytest.raises(helm_python.HelmError):
            chart.validate_schema(merged)


def test_the_image_becomes_an_executor_of_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark gives the image one argument, and the rest in the environment."""
    java = tmp_path / "home" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'openjdk version \"17.0.1\"' >&2\n")
    java.chmod(stat.S_IRWXU)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("WEIR_DATA", str(tmp_path / "data"))
    started: list[list[str]] = []
    monkeypatch.setattr("os.execve", lambda _path, command, _env: started.append(command))
    assert main(["executor"]) == 2
    names = [
        "DRIVER_URL", "EXECUTOR_ID", "EXECUTOR_CORES", "APPLICATION_ID", "EXECUTOR_POD_IP",
        "EXECUTOR_POD_NAME", "RESOURCE_PROFILE_ID",
    ]  # fmt: skip
    for name in names:
        monkeypatch.setenv(f"SPARK_{name}", name.lower())
    monkeypatch.setenv("SPARK_EXECUTOR_MEMORY", "2g")
    for number in (0, 10, 9):
        monkeypatch.setenv(f"SPARK_JAVA_OPT_{number}", f"-D{number}=x y")
    main(["executor"])
    (command,) = started
    assert command[:6] == [str(java), "-D0=x y", "-D9=x y", "-D10=x y", "-Xms2g", "-Xmx2g"]
    assert {*command[9::2]} == {
        "--driver-url", "--executor-id", "--cores", "--app-id", "--hostname", "--podName",
        "--resourceProfileId",
    }  # fmt: skip
    assert {*command[10::2]} == {name.lower() for name in names}
