"""The helpers of `integrations/` for other languages, each with real clients and its own tools."""

from __future__ import annotations

import os
import re
import shutil
import signal
import tarfile

import pytest

from compat_tests.cache import locked
from compat_tests.clients import node_client
from compat_tests.integrations import copied, run, write_examples
from compat_tests.toolchains import find_program
from kafkalite import __version__
from tests.action import Runner


@pytest.mark.compat
@pytest.mark.xdist_group("maven")
def test_junit_extension_is_built_and_tests_a_spring_application(tmp_path):
    project = copied("junit", tmp_path)
    assert write_examples(project / "README.md", project) == 2
    command = [find_program("mvn"), "-B", "-q", "-Dstyle.color=never", "package"]
    with locked("maven"):
        run(command, project)
    reports = "".join(
        file.read_text() for file in (project / "target/surefire-reports").glob("*.xml")
    )
    for name in (
        "anOrderIsBilledOnce",
        "myConsumerSurvivesALostCommit",
        "myJobAfterAWeekOf",
        "myServiceRefusesASchemaThatBreaksReaders",
        "nested",
    ):
        assert re.search(rf'<testcase name="{name}', reports), name
    assert "<failure" not in reports
    assert (project / "target" / f"kafkalite-junit-{__version__}.jar").exists()


@pytest.mark.compat
def test_node_helper_works_with_kafkajs_as_it_is_packed(tmp_path):
    package = copied("node", tmp_path)
    node = find_program("node")
    assert "# pass 5" in run([node, "--test", "--test-reporter=tap"], package)
    run([find_program("npm"), "pack", "--silent", "--pack-destination", str(tmp_path)], package)
    with tarfile.open(tmp_path / f"kafkalite-{__version__}.tgz") as packed:
        packed.extractall(tmp_path / "unpacked", filter="data")
    project = tmp_path / "project"
    installed = project / "node_modules" / "kafkalite"
    shutil.copytree(tmp_path / "unpacked" / "package", installed)
    assert write_examples(installed / "README.md", project) == 1
    _, environment = node_client("kafkajs")
    command = [node, "--test", "--test-reporter=tap", "orders.test.js"]
    assert "# pass 3" in run(command, project, **environment)


@pytest.mark.compat
def test_go_helper_works_with_franz_go(tmp_path):
    module = copied("go", tmp_path)
    go = find_program("go")
    assert write_examples(module / "README.md", module) == 1
    for folder in (module, module / "example"):
        run([go, "vet", "./..."], folder)
        said = run([go, "test", "-count=1", "-v", "./..."], folder)
    for name in (
        "TestMyConsumerSurvivesALostCommit",
        "TestMyJobAfterAWeekOfRetention",
        "TestMyServiceRefusesASchemaThatBreaksReaders",
    ):
        assert f"--- PASS: {name}" in said


@pytest.mark.compat
def test_action_for_github_installs_the_broker_that_it_starts(tmp_path):
    runner = Runner(tmp_path, listen="127.0.0.1:0", http="127.0.0.1:0")
    for step in (0, 1):
        code, said = runner.step(step)
        assert code == 0, said
    program = tmp_path / "kafkalite" / "bin" / "kafkalite"
    bootstrap = runner.outputs()["bootstrap-servers"]
    try:
        run([str(program), "health", "-b", bootstrap], tmp_path, PYTHONPATH="")
    finally:
        os.kill(runner.background(), signal.SIGTERM)
