"""What README.md says is so: its Python and its command lines are run against a broker.

The snippets of other languages are run by compat_tests/test_readme.py.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kafkalite.testing import Broker
from tests.readme import README, snippets, with_api_table


@pytest.fixture(scope="module")
def broker():
    with Broker() as running:
        yield running


def run(command, bootstrap):
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "KAFKALITE_BOOTSTRAP": bootstrap, "PATH": path}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(snippets("python"))))
def test_python_does_what_it_shows(broker, number):
    broker.reset()
    output = run([sys.executable, "-c", snippets("python")[number].at(broker.bootstrap)], "nowhere")
    assert "b'customer-7'" in output
    assert "b'hello'" in output


@pytest.mark.slow
def test_fixtures_of_pytest_do_what_it_shows(tmp_path):
    (snippet,) = snippets("pytest")
    file = tmp_path / "test_orders.py"
    file.write_text(snippet.text)
    output = run([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(file)], "nowhere")
    assert "1 passed" in output


@pytest.mark.slow
def test_faults_and_clock_do_what_it_shows():
    (snippet,) = snippets("faults")
    run([sys.executable, "-c", snippet.text], "nowhere")


@pytest.mark.slow
@pytest.mark.xdist_group("cluster")
def test_cluster_does_what_it_shows():
    (snippet,) = snippets("cluster")
    run([sys.executable, "-c", snippet.text], "nowhere")


@pytest.mark.slow
def test_command_lines_do_what_they_show(broker):
    broker.reset()
    (snippet,) = snippets("shell")
    output = run(["sh", "-e", "-c", snippet.text], broker.bootstrap)
    assert "key=customer-7  hello" in output
    assert "orders: 3 partitions, 1 offset" in output


def test_table_of_apis_is_that_of_the_broker():
    text = README.read_text()
    assert text == with_api_table(text), "python3 tests/readme.py writes it anew"
