"""What the figures of a benchmark say that they were measured on."""

import sys

import pytest

from benchmarks import machine

PYENV = "'--prefix=/opt/python' '--enable-shared' 'LDFLAGS=-L/opt/lib'"
DEBIAN = "'--without-ensurepip' '--with-wheel-pkg-dir=/usr/share/python-wheels/' 'CFLAGS=-g'"
PROFILED = "'--prefix=/usr/local' '--enable-optimizations' '--with-lto'"


@pytest.mark.parametrize(
    ("options", "expected"), [(PYENV, False), (DEBIAN, True), (PROFILED, True), ("", False)]
)
def test_an_interpreter_that_was_built_by_a_profile_is_known(options, expected):
    assert machine.is_optimised(options) is expected


def test_line_names_the_interpreter_and_the_build():
    line = machine.describe()
    assert f"Python {sys.version.split()[0]} (built with" in line
    assert ", kafkalite pure," in line or ", kafkalite compiled," in line


def test_line_names_the_interpreter_of_the_compiled_build_beside():
    line = machine.describe(sys.executable)
    assert f"and compiled (Python {sys.version.split()[0]} (built with" in line
