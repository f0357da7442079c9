"""Child processes: their output, their end, and that none outlives the one that started it."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kafkalite.testing.processes import Child, unused_port, wait_until_true

pytestmark = pytest.mark.slow

PARENT = """
import sys, time
from pathlib import Path
from kafkalite.testing.processes import Child
child = Child(["sleep", "100"], log_file=Path(sys.argv[1]))
print(child.pid, flush=True)
time.sleep(100)
"""


@pytest.fixture
def log_file(tmp_path):
    return tmp_path / "log"


def is_alive(pid):
    """A zombie, which nobody has waited for yet, is dead."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def test_output_is_that_of_the_latest_run(log_file):
    for word in ("first", "second"):
        child = Child(["/bin/sh", "-c", f"echo {word}; echo more >&2"], log_file=log_file)
        assert child.wait(10) == 0
        assert child.output() == f"{word}\nmore\n"
    assert log_file.read_text() == "first\nmore\nsecond\nmore\n"
    assert child.tail(1) == "more"


def test_exit_code_and_signals_are_told(log_file):
    assert Child(["/bin/sh", "-c", "exit 3"], log_file=log_file).wait(10) == 3
    child = Child(["sleep", "100"], log_file=log_file)
    assert child.is_running
    assert child.stop(10) == -signal.SIGTERM
    assert child.poll() == -signal.SIGTERM
    child.send(signal.SIGTERM)  # too late, and harmless
    assert Child(["sleep", "100"], log_file=log_file).kill() == -signal.SIGKILL


def test_stop_also_ends_what_is_paused_or_deaf(log_file):
    paused = Child(["sleep", "100"], log_file=log_file)
    paused.pause()
    assert paused.stop(10) == -signal.SIGTERM
    deaf = Child(["/bin/sh", "-c", "trap '' TERM; echo ready; sleep 100"], log_file=log_file)
    assert wait_until_true(lambda: "ready" in deaf.output(), 10)
    assert deaf.stop(0.05) == -signal.SIGKILL


def test_paused_child_stands_still_until_it_is_resumed(log_file):
    child = Child([sys.executable, "-uc", "while True: print(flush=True)"], log_file=log_file)
    for _ in range(20):
        seen = log_file.stat().st_size
        assert wait_until_true(lambda seen=seen: log_file.stat().st_size > seen, 10)
        child.pause()
        size = log_file.stat().st_size
        time.sleep(0.01)
        assert log_file.stat().st_size == size
        child.resume()
    child.kill()
    child.pause()  # too late, and harmless


def test_waiting_for_one_that_runs_is_given_up(log_file):
    child = Child(["sleep", "100"], log_file=log_file)
    with pytest.raises(TimeoutError):
        child.wait(0.01)
    child.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_child_ends_with_a_parent_that_could_not_say_goodbye(log_file, number):
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(log_file)], stdout=subprocess.PIPE, text=True
    )
    with parent:
        pid = int(parent.stdout.readline())
        assert is_alive(pid)
        parent.send_signal(number)
    assert wait_until_true(lambda: not is_alive(pid), 10)


def test_environment_is_the_one_given(log_file):
    child = Child(["/usr/bin/env"], log_file=log_file, environment={"KAFKA_NODE_ID": "3"})
    child.wait(10)
    assert "KAFKA_NODE_ID=3" in child.output().splitlines()
    assert not any(line.startswith("HOME=") for line in child.output().splitlines())
    assert os.environ["HOME"]


def test_unused_port_can_be_listened_on():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", unused_port()))
        listener.listen()


def test_condition_that_never_holds_is_told():
    assert not wait_until_true(lambda: False, 0.02)
