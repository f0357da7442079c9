"""`kafkalite serve --read-only DIR`: what a broker needs to show somebody's data directory."""

import tempfile
from contextlib import ExitStack
from pathlib import Path

import click

from kafkalite.log.view import make_view

FOR_EVER_MINUTES = 2**31 - 1


def settings_to_show(source: Path, kept: ExitStack) -> dict[str, str]:
    """Return the settings of a broker that shows a data directory, by a view that `kept` removes.

    Raises:
        ClickException: it is no data directory, or cannot be read.
    """
    view = Path(kept.enter_context(tempfile.TemporaryDirectory(prefix="kafkalite-view-"))) / "data"
    try:
        make_view(source, view)
    except OSError as error:
        raise click.ClickException(f"{source}: {error.strerror or error}") from None
    if not any(view.iterdir()):
        raise click.ClickException(f"{source} is empty: it is no data directory")
    return {
        **_identity(view / "meta.properties"),
        "log.dirs": str(view),
        "kafkalite.read.only": "true",
        "auto.create.topics.enable": "false",
        "offsets.retention.minutes": str(FOR_EVER_MINUTES),
    }


def _identity(path: Path) -> dict[str, str]:
    """Return whose directory it is: a broker must have the id that stands there."""
    if not path.exists():
        return {}
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    said = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    node_id = said.get("node.id", said.get("broker.id"))
    return {} if node_id is None else {"node.id": node_id.strip()}
