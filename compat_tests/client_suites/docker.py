"""Stands in for `docker compose` where a suite starts, stops and looks into brokers by it.

Run as a program of its own. Orders for brokers go to the process that runs the suite, if it takes
any; what is to be run beside a broker is run here, with the suite's paths and addresses replaced.
"""

from __future__ import annotations

import json
import os
import sys
from multiprocessing.connection import Client

#: Path of the socket that orders go to.
SOCKET_VARIABLE = "KAFKALITE_SUITE_SOCKET"
#: JSON: what stands in commands, and what is put in its place.
REPLACED_VARIABLE = "KAFKALITE_SUITE_REPLACED"

_EXEC_OPTIONS = ("-T",)


def main(arguments: list[str]) -> int:
    """Do what `docker compose ARGUMENTS` is to do; return the exit code."""
    words = [word for word in arguments if word != "compose"]
    if "exec" in words:
        command = [w for w in words[words.index("exec") + 1 :] if w not in _EXEC_OPTIONS][1:]
        for old, new in json.loads(os.environ[REPLACED_VARIABLE]).items():
            command = [word.replace(old, new) for word in command]
        os.execvp(command[0], command)
    if SOCKET_VARIABLE not in os.environ:
        print("container")
        return 0
    with Client(os.environ[SOCKET_VARIABLE], family="AF_UNIX") as connection:
        connection.send(words)
        code, text = connection.recv()
    sys.stdout.write(text)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
