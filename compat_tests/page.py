"""Parts of docs/compatibility.md that are written anew when their tests are run."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_MARKDOWN = str.maketrans({"|": "/", "<": "&lt;", ">": "&gt;", "*": "\\*", "`": "'"})


def replace_part(document: Path, title: str, part: str) -> None:
    """Put a part, which begins with its heading `title`, in the place of the one that is there."""
    before, _, rest = document.read_text(encoding="utf-8").partition(title)
    _, found, after = rest.partition("\n## ")
    end = f"\n## {after}" if found else ""
    document.write_text(before.rstrip("\n") + "\n\n" + part + end, encoding="utf-8")


def plain(text: str) -> str:
    """Return a message with nothing that Markdown takes for its own."""
    return text.translate(_MARKDOWN)
