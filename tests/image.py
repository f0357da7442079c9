"""The image of the Dockerfile as processes: its files in a folder that stands for its root.

Without a Docker engine the files are copied as the Dockerfile says, and run as they are but for
addresses: each absolute path of the image is one below that folder, each port of a listener is a
free one of loopback, and `kafkalite`, which pip would install, runs this checkout.
"""

import os
import re
import shutil
import sys

from kafkalite.testing.processes import Child, unused_port
from tests.compose import ROOT, dockerfile, last_of, variables_of

#: Paths that scripts of the image or of test kits write or name.
_PATHS = re.compile(
    r"(?<![\w./-])/(?=(?:etc/(?:kafka|confluent)|usr/local/bin|usr/sbin|opt/kafka|mnt/shared"
    r"|var/lib/kafka(?:lite)?|tc-start\.sh|testcontainers\.sh"
    r"|tmp/(?:testcontainers_start\.sh|zookeeper\.properties))"
    r"(?![\w-]))"
)
_LISTENER = re.compile(r"(?<=[A-Z0-9]://)([^:,]*):(\d+)")


class Image:
    """A container's files, made from the Dockerfile.

    Args:
        root: a folder that does not exist yet; it stands for `/`.
        target: stage of the Dockerfile.
    """

    def __init__(self, root, target="broker"):
        self.root = root
        self.instructions = dockerfile(target)
        self.ports = {}
        for instruction, rest in self.instructions:
            if instruction == "COPY":
                *sources, destination = rest.split()
                for source in sources:
                    if source.startswith("integrations/"):
                        shutil.copytree(ROOT / source, self.path(destination), dirs_exist_ok=True)
        for file in self.root.rglob("*"):
            if file.is_file():
                file.write_text(self.mapped(file.read_text()))
        for folder in ("tmp", "usr/sbin", self.workdir.relative_to(self.root)):
            (self.root / folder).mkdir(parents=True, exist_ok=True)
        self.write(
            "/usr/local/bin/kafkalite", f'#!/bin/sh\nexec {sys.executable} -m kafkalite "$@"'
        )

    @property
    def workdir(self):
        """The folder that stands for the working directory."""
        return self.path(last_of(self.instructions, "WORKDIR"))

    def path(self, path):
        """Return where a path of the image is."""
        return self.root / path.lstrip("/")

    def write(self, path, text):
        """Put a file into the container, as `docker cp` does."""
        self.path(path).write_text(self.mapped(text))
        self.path(path).chmod(0o777)

    def mapped(self, text):
        """Return a text with the paths of the image below the folder that stands for its root."""
        return _PATHS.sub(f"{self.root}/", text)

    def port(self, number):
        """Return the port of loopback that stands for a port of the container."""
        return self.ports.setdefault(number, unused_port())

    def listeners(self, text):
        """Return listeners with ports of loopback in the place of the container's."""
        return _LISTENER.sub(lambda found: f"127.0.0.1:{self.port(int(found[2]))}", text)

    def run(self, command=None, *, entrypoint=None, environment=None, log="log"):
        """Start the container: its entry point with a command, by default both of the image."""
        entry = last_of(self.instructions, "ENTRYPOINT") if entrypoint is None else entrypoint
        words = [*entry, *(last_of(self.instructions, "CMD") if command is None else command)]
        variables = variables_of(self.instructions) | (environment or {})
        return Child(
            # What Docker would find on the PATH of the image.
            ["/usr/bin/env", "-C", str(self.workdir), *(self.mapped(word) for word in words)],
            log_file=self.root / log,
            environment={
                "PATH": os.pathsep.join([str(self.path("/usr/local/bin")), os.environ["PATH"]]),
                "PYTHONPATH": str(ROOT),
                **{name: self.mapped(value) for name, value in variables.items()},
            },
        )


def scripts():
    """Return the files that the image has beside its packages."""
    folder = ROOT / "integrations" / "image"
    return [file for file in sorted(folder.rglob("*")) if file.is_file()]
