"""The action for GitHub: its steps are run as they are, and what its README shows fits it."""

import contextlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from kafkalite.client.cluster import Client
from kafkalite.config import settings_of_environment
from kafkalite.settings.registry import BROKER as BROKER_SETTINGS
from tests.action import ACTION, FOLDER, Runner
from tests.compose import ROOT, dockerfile, last_of

_WORKFLOW = re.compile(r"<!-- workflow: (\w+) -->\n```yaml\n(.*?)```\n", re.DOTALL)
WORKFLOWS = {
    name: yaml.safe_load(text)
    for name, text in _WORKFLOW.findall((FOLDER / "README.md").read_text())
}


def stop_broker(folder):
    """End the broker that a step left behind, as the end of a job does."""
    file = folder / "broker.pid"
    if file.exists():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(file.read_text()), signal.SIGTERM)


@pytest.fixture
def folder(tmp_path):
    """RUNNER_TEMP, with this checkout in the place of what the first step installs."""
    programs = tmp_path / "kafkalite" / "bin"
    programs.mkdir(parents=True)
    command = programs / "kafkalite"
    command.write_text(
        f"#!/bin/sh\n[ $1 != serve ] || echo $$ > {tmp_path}/broker.pid\n"
        f'PYTHONPATH={ROOT} exec {sys.executable} -m kafkalite "$@"\n'
    )
    command.chmod(0o755)
    yield tmp_path
    stop_broker(tmp_path)


@pytest.mark.slow
def test_broker_runs_on_for_the_steps_that_follow(folder):
    runner = Runner(
        folder,
        listen="127.0.0.1:0",
        http="127.0.0.1:0",
        settings="num.partitions=3\n\nlog.retention.hours=1\n",
        **{"schema-registry": "true"},
    )
    code, said = runner.step(1)
    assert code == 0, said
    outputs = runner.outputs()
    with Client(outputs["bootstrap-servers"], timeout_ms=10_000) as client:
        assert len(client.fetch_metadata([]).brokers) == 1
    following = runner.written("GITHUB_ENV")
    assert following["KAFKALITE_HTTP"] == outputs["http"]
    assert following["KAFKALITE_BOOTSTRAP"] == outputs["bootstrap-servers"]
    made = subprocess.run(
        [folder / "kafkalite" / "bin" / "kafkalite", "topics", "create", "orders"],
        env={**os.environ, **following},
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.stdout == "created topic orders\n", made.stderr
    assert "kafkalite ready" in Path(outputs["log"]).read_text()


@pytest.mark.slow
def test_broker_that_does_not_start_fails_the_step_in_words(folder):
    runner = Runner(folder, listen="127.0.0.1:0", http="off", settings="num.partitions=many")
    code, said = runner.step(1)
    assert code == 1
    assert "num.partitions" in said


def test_steps_that_are_shown_use_inputs_and_outputs_that_exist():
    steps = WORKFLOWS["action"]["jobs"]["test"]["steps"]
    (used,) = [step for step in steps if "integrations/github-action" in step.get("uses", "")]
    assert not used["with"].keys() - ACTION["inputs"].keys()
    text = yaml.dump(steps)
    for name in re.findall(rf"steps\.{used['id']}\.outputs\.([\w-]+)", text):
        assert name in ACTION["outputs"]
    rows = re.findall(r"^\| `([\w-]+)` \|", (FOLDER / "README.md").read_text(), re.MULTILINE)
    assert rows == [*ACTION["inputs"]]


def test_service_containers_have_settings_that_exist():
    service = WORKFLOWS["service"]["jobs"]["test"]["services"]["kafka"]
    gitlab = WORKFLOWS["gitlab"]["test"]["services"][0]["variables"]
    for environment in (service["env"], gitlab):
        assert settings_of_environment(environment).keys() <= BROKER_SETTINGS.keys()
    assert last_of(dockerfile("broker"), "EXPOSE") == "9092"
    assert service["ports"][0] == "9092:9092"
