"""docker-compose.yml and Dockerfile as data, and the services of the former as processes.

Without a Docker engine the services of kafkalite are started with exactly their command and
environment; of what these name, only addresses and folders are replaced: each port of a container
by a free one of loopback, host names by 127.0.0.1, volumes by folders of the test.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import yaml

from kafkalite.testing.processes import Child, unused_port

ROOT = Path(__file__).parent.parent
COMPOSE_FILE = ROOT / "docker-compose.yml"
DOCKERFILE = ROOT / "Dockerfile"

_LISTENER = re.compile(r"(?P<name>[A-Z]+)://(?P<host>[^:,]*):(?P<port>\d+)")


def compose():
    """Return the compose file, with its anchors and merges resolved."""
    return yaml.safe_load(COMPOSE_FILE.read_text())


def dockerfile(target):
    """Return (instruction, arguments) of a stage of the Dockerfile and of what it is made from."""
    stages, name = {}, ""
    text = re.sub(r"\\\n", " ", DOCKERFILE.read_text())
    for line in text.splitlines():
        instruction, _, rest = line.partition(" ")
        if instruction == "FROM":
            base, _, name = rest.partition(" AS ")
            stages[name] = list(stages.get(base, []))
        elif instruction and instruction != "#":
            stages[name].append((instruction, rest.strip()))
    return stages[target]


def last_of(instructions, wanted):
    """Return the value of the last instruction of a kind: a list where it is written as one."""
    value = [rest for instruction, rest in instructions if instruction == wanted][-1]
    return json.loads(value) if value.startswith("[") else value


def variables_of(instructions):
    """Return the environment that a stage gives to its containers."""
    found = {}
    for instruction, rest in instructions:
        if instruction == "ENV":
            found |= dict(word.split("=", 1) for word in rest.split())
    return found


class Container:
    """A kafkalite service of the compose file as a process.

    Args:
        name: of the service.
        service: what the file says about it.
        network: of all containers.
        folder: where its volumes are.
    """

    def __init__(self, name, service, network, folder):
        self.name = name
        self.service = service
        self.network = network
        self.folder = folder
        folder.mkdir()
        self.volumes = {}
        for volume in service.get("volumes", []):
            source, target = volume.split(":")
            self.volumes[target] = folder / source
            self.volumes[target].mkdir()
        self.child = None

    def command(self, words):
        """Return a command line in the container, its program replaced by this Python's.

        What the image's own scripts do is tested by tests/test_image.py.
        """
        if words[:2] == ["docker-entrypoint", "serve"]:
            words = ["kafkalite", *words[1:]]
        assert words[0] == "kafkalite"
        return [sys.executable, "-m", *self.mapped(words)]

    def mapped(self, words):
        return [self.network.mapped(self.name, self._in_folder(word)) for word in words]

    def start(self):
        image = dockerfile(self.service["build"]["target"])
        command = self.service.get("command") or last_of(image, "CMD")
        words = [*last_of(image, "ENTRYPOINT"), *command]
        variables = variables_of(image) | self.service.get("environment", {})
        mapped = dict(zip(variables, self.mapped(variables.values()), strict=True))
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **mapped}
        log_file = self.folder / "log"
        self.child = Child(self.command(words), log_file=log_file, environment=environment)

    def is_healthy(self):
        """Run the service's own health check."""
        kind, *words = self.service["healthcheck"]["test"]
        assert kind == "CMD"
        done = subprocess.run(
            self.command(words), cwd=ROOT, capture_output=True, text=True, timeout=30, check=False
        )
        return done.returncode == 0

    def _in_folder(self, text):
        for target, folder in self.volumes.items():
            text = text.replace(target, str(folder))
        return text


class Network:
    """Which port of loopback stands for each port of each container.

    Args:
        services: of the compose file.
        outside: services that are there already: their address by `host:port`.
    """

    def __init__(self, services, outside):
        self.services = services
        self.outside = outside
        self.ports = {}

    def port(self, service, number):
        """Return the port of loopback for a port inside a container."""
        assert service in self.services
        return self.ports.setdefault((service, number), unused_port())

    def published(self, number):
        """Return the port of loopback for one that is published on the host."""
        for name, service in self.services.items():
            for mapping in service.get("ports", []):
                host, _, inside = mapping.rpartition(":")
                if int(host.rpartition(":")[2]) == number:
                    return self.port(name, int(inside))
        raise AssertionError(f"nobody publishes port {number}")

    def mapped(self, service, text):
        """Return a word or a variable of a container with the addresses that stand for its own."""
        for address, real in self.outside.items():
            text = text.replace(address, real)
        if "://" in text:
            return _LISTENER.sub(lambda found: self._listener(service, found), text)
        # A health check is run inside of the container: localhost is the container.
        found = re.fullmatch(r"localhost:(\d+)", text)
        return text if found is None else f"127.0.0.1:{self.port(service, int(found[1]))}"

    def _listener(self, service, found):
        name, host, number = found["name"], found["host"], int(found["port"])
        # "localhost" is what clients on the host are told.
        if host == "localhost":
            if not self.services[service].get("ports"):
                return found[0]
            port = self.published(number)
        elif host in {"", "0.0.0.0", *self.services}:
            port = self.port(host if host in self.services else service, number)
        else:
            return found[0]
        return f"{name}://127.0.0.1:{port}"
