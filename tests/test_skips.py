"""What a machine lacks is a skip; in CI a failure, if it can be installed (`conftest.py`)."""

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

TESTS = """
from pytest import fixture, mark

from compat_tests.toolchains import MissingToolchain


@fixture
def broker():
    raise MissingToolchain("no Java")


def test_with_a_fixture(broker):
    pass


def test_by_itself():
    raise MissingToolchain("no Go")


@mark.skipif(True, reason="needs root")
def test_with_a_mark():
    pass


def test_that_lacks_nothing():
    pass
"""

MODULE = """
from pytest import skip

skip("no Spark", allow_module_level=True)
"""


@pytest.fixture
def run(pytester):
    pytester.makeconftest((Path(__file__).parent.parent / "conftest.py").read_text())

    def run(text):
        pytester.makepyfile(text)
        return pytester.runpytest_inprocess("-ra", "-p", "no:cacheprovider")

    return run


@pytest.mark.parametrize(
    ("ci", "text", "outcomes"),
    [
        ("", TESTS, {"passed": 1, "skipped": 3}),
        ("true", TESTS, {"passed": 1, "failed": 1, "errors": 1, "skipped": 1}),
        ("", MODULE, {"skipped": 1}),
        ("true", MODULE, {"errors": 1}),
    ],
)
def test_what_is_missing_is_skipped_and_fails_in_ci(run, monkeypatch, ci, text, outcomes):
    monkeypatch.setenv("CI", ci)
    run(text).assert_outcomes(**outcomes)


@pytest.mark.parametrize("ci", ["", "true"])
def test_it_is_said_what_is_missing(run, monkeypatch, ci):
    monkeypatch.setenv("CI", ci)
    said = run(TESTS).stdout.str()
    for reason in ("no Java", "no Go", "needs root"):
        assert reason in said
    assert ("CI must have it" in said) is (ci == "true")
