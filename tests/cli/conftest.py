"""Fixtures of this folder's tests."""

import pytest

from kafkalite.cli.main import run
from kafkalite.testing import Broker


@pytest.fixture(scope="module")
def shared_broker():
    with Broker() as broker:
        yield broker


@pytest.fixture
def broker(shared_broker, monkeypatch):
    shared_broker.reset()
    monkeypatch.setenv("KAFKALITE_BOOTSTRAP", shared_broker.bootstrap)
    return shared_broker


@pytest.fixture
def kafkalite(broker, capsys):
    """Run a command line; return its lines of output. Fails if the exit code is another."""

    def run_command(*arguments, code=0, error=None):
        capsys.readouterr()
        assert run(list(arguments)) == code, capsys.readouterr().err
        captured = capsys.readouterr()
        if error is not None:
            assert captured.err == f"kafkalite: {error}\n"
        return captured.out.splitlines()

    return run_command
