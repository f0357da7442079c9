"""The composite action of GitHub as its shell steps: what a runner does, as far as they need it."""

import os
import re
import subprocess
from pathlib import Path

import yaml

from tests.compose import ROOT

FOLDER = ROOT / "integrations" / "github-action"
ACTION = yaml.safe_load((FOLDER / "action.yml").read_text())

_EXPRESSION = re.compile(r"\$\{\{ *([\w.-]+) *\}\}")


class Runner:
    """A job that uses the action with some inputs."""

    def __init__(self, folder, **inputs):
        self.folder = folder
        unknown = inputs.keys() - ACTION["inputs"].keys()
        assert not unknown, unknown
        given = {name: one["default"] for name, one in ACTION["inputs"].items()} | inputs
        self.values = {f"inputs.{name}": value for name, value in given.items()}
        self.values["github.action_path"] = str(FOLDER)
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("KAFKA", "PYTHON", "VIRTUAL_ENV"))
        }
        self.environment["RUNNER_TEMP"] = str(folder)
        for name in ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH"):
            self.environment[name] = str(folder / name)
            (folder / name).touch()

    def resolved(self, text):
        """Return a text with the values of its expressions; each has to be known."""
        return _EXPRESSION.sub(lambda found: self.values[found[1]], text)

    def step(self, number):
        """Run a step as GitHub's runner does; return its exit code and what it printed."""
        step = ACTION["runs"]["steps"][number]
        assert step["shell"] == "bash"
        script = self.folder / f"step-{number}.sh"
        script.write_text(step["run"])
        variables = {name: self.resolved(value) for name, value in step["env"].items()}
        with open(self.folder / f"step-{number}.log", "w+") as said:
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
                env=self.environment | variables,
                cwd=self.folder,
                stdout=said,
                stderr=subprocess.STDOUT,
                timeout=300,
                check=False,
            )
        if "id" in step:
            for name, value in self.written("GITHUB_OUTPUT").items():
                self.values[f"steps.{step['id']}.outputs.{name}"] = value
        return done.returncode, (self.folder / f"step-{number}.log").read_text()

    def background(self):
        """Return the process that a step left running, as the end of a job finds it."""
        for process in Path("/proc").glob("[0-9]*"):
            try:
                words = (process / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if f"{self.folder}/kafkalite/bin/kafkalite".encode() in words and b"serve" in words:
                return int(process.name)
        raise AssertionError("no step left a broker running")

    def written(self, name):
        """Return the pairs that steps wrote to a file of the runner."""
        lines = Path(self.environment[name]).read_text().splitlines()
        return dict(line.split("=", 1) for line in lines)

    def outputs(self):
        """Return the outputs of the action."""
        return {name: self.resolved(one["value"]) for name, one in ACTION["outputs"].items()}
