"""run.py: what fails on a busy machine has another try, by itself, and what is broken fails."""

import sys
from pathlib import Path

import pytest

from tests.run import AGAIN_MAX, pytest_twice

pytestmark = [pytest.mark.slow]

CONFTEST = """
def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        with open("runs", "a") as runs:
            runs.write("another\\n")
"""

FAILS_ONCE = """
from pathlib import Path


def test_that_is_starved():
    noted = Path("noted")
    is_first = not noted.exists()
    noted.touch()
    assert not is_first
"""

PASSES = """
def test_that_passes():
    pass
"""

FAIL = """
import pytest


@pytest.mark.parametrize("number", range({count}))
def test_that_is_broken(number):
    assert False
"""


@pytest.mark.parametrize(
    ("text", "code", "runs"),
    [
        (FAILS_ONCE + PASSES, 0, 2),
        (FAIL.format(count=1) + PASSES, 1, 2),
        (FAIL.format(count=AGAIN_MAX + 1), 1, 1),
        (PASSES, 0, 1),
    ],
    ids=["starved", "broken", "many broken", "none broken"],
)
def test_what_fails_beside_others_is_run_once_more(tmp_path, text, code, runs):
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_some.py").write_text(text)
    assert pytest_twice(Path(sys.executable), tmp_path, "-q", "test_some.py") == code
    assert (tmp_path / "runs").read_text().count("another") == runs
