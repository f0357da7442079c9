"""How much work something is, whatever the machine: in calls of functions or lines, not in time."""

import sys


def calls_of(function):
    """Return how many calls, of Python's own functions too, are made by `function()`."""
    count = 0

    def on_event(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(on_event)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count


def lines_of(function):
    """Return how many lines of Python are run by `function()`."""
    count = 0

    def on_event(frame, event, argument):
        nonlocal count
        count += event == "line"
        return on_event

    before = sys.gettrace()
    sys.settrace(on_event)
    try:
        function()
    finally:
        sys.settrace(before)
    return count
