"""One plain line of any error."""

import pytest

from kafkalite.pipeline.errors import plain_line


class JavaException:
    def __init__(self, message, cause=None):
        self._message = message
        self._cause = cause

    def getMessage(self):
        return self._message

    def getCause(self):
        return self._cause


class Py4JError(Exception):
    def __init__(self, java):
        super().__init__("An error occurred while calling o1.get.\n: java.lang…\n\tat x.y")
        self.java_exception = java


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("plain", "plain"),
        ("\n  first\nsecond", "first"),
        ("java.lang.IllegalStateException: no", "no"),
        (
            "java.util.concurrent.ExecutionException: kept.as.it.is: yes",
            "kept.as.it.is: yes",
        ),
        # A class alone is better than nothing.
        ("org.apache.kafka.errors.TimeoutException", "org.apache.kafka.errors.TimeoutException"),
        (
            "[UNRESOLVED] no column `x`. SQLSTATE: 42703; line 1 pos 0;",
            "[UNRESOLVED] no column `x`.",
        ),
    ],
)
def test_text_becomes_its_first_line_without_java_classes(text, line):
    assert plain_line(ValueError(text)) == line


def test_error_without_text_gives_its_class():
    assert plain_line(ValueError()) == "ValueError"


def test_innermost_java_cause_that_says_something_is_told():
    innermost = JavaException(
        "This server does not host this topic-partition.", JavaException(None)
    )
    error = Py4JError(JavaException("org.Outer: org.Inner: x", innermost))
    assert plain_line(error) == "This server does not host this topic-partition."


def test_endless_chain_of_causes_ends():
    error = JavaException("round")
    error._cause = error
    assert plain_line(Py4JError(error)) == "round"


def test_python_worker_is_told_by_the_end_of_its_traceback():
    text = (
        "An exception was thrown from the Python worker.\n"
        "Traceback (most recent call last):\n"
        '  File "worker.py", line 1, in main\n'
        "    raise ModuleNotFoundError\n"
        "ModuleNotFoundError: No module named 'kafkalite'\n"
        "\n\tat org.apache.spark"
    )
    assert plain_line(ValueError(text)) == "No module named 'kafkalite'"
