"""A broker of its own process for the Spark tests and the example."""

import contextlib
import dataclasses
import os
import selectors
import subprocess
import sys
import time
from pathlib import Path

START_SECONDS = 30


@dataclasses.dataclass
class Serving:
    """A broker of its own process."""

    bootstrap: str
    process: subprocess.Popen
    log_path: Path

    def check(self) -> None:
        """Raise if the broker has ended, with the last it said."""
        code = self.process.poll()
        if code is not None:
            log = self.log_path.read_text()[-3000:]
            raise RuntimeError(f"the broker ended with {code}; its log ends with:\n{log}")


@contextlib.contextmanager
def serving(folder: Path, **settings: str):
    """Run ``kafkalite serve`` for the time of a ``with`` block and give it as a `Serving`.

    Settings have Kafka's names with ``_`` for ``.``; the data and the log go to the folder.
    """
    command = [sys.executable, "-m", "kafkalite", "serve", "--listen", "127.0.0.1:0"]
    command += ["--data-dir", str(folder / "data")]
    for name, value in settings.items():
        command += ["--set", f"{name.replace('_', '.')}={value}"]
    log_path = folder / "broker.log"
    with open(log_path, "wb") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log)
    try:
        yield Serving(_bootstrap(process, log_path), process, log_path)
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def _bootstrap(process: subprocess.Popen, log_path: Path) -> str:
    deadline = time.monotonic() + START_SECONDS
    seen = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while b"\n" not in seen:
            if not selector.select(deadline - time.monotonic()):
                raise TimeoutError(f"the broker was not ready in {START_SECONDS} s")
            chunk = os.read(process.stdout.fileno(), 4096)
            if not chunk:
                raise RuntimeError(f"the broker did not start:\n{log_path.read_text()[-3000:]}")
            seen += chunk
    line = seen.decode().splitlines()[0]
    words = dict(word.split("=", 1) for word in line.split() if "=" in word)
    assert line.startswith("kafkalite ready: "), line
    return words["bootstrap"]
