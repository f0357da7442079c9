#!/usr/bin/env python3
"""The parts of README.md that programs look after: snippets that tests run, the table of APIs.

python3 tests/readme.py       writes the table of APIs anew
"""

import re
from dataclasses import dataclass
from pathlib import Path

from kafkalite.api import HANDLERS

README = Path(__file__).parent.parent / "README.md"
ADDRESS = "127.0.0.1:9092"

_SNIPPET = re.compile(r"<!-- run: ([^ \n]+) ?([^ \n]*) -->\n```\w+\n(.*?)```\n", re.DOTALL)
_TABLE = re.compile(r"(<!-- apis: begin -->\n).*(<!-- apis: end -->\n)", re.DOTALL)
_COLUMNS = 3


@dataclass(frozen=True)
class Snippet:
    """A block that is to be run, as its comment says."""

    kind: str
    argument: str
    text: str

    def at(self, bootstrap: str) -> str:
        """Return the text with another address of the broker in it."""
        return self.text.replace(ADDRESS, bootstrap)


def snippets(kind: str) -> list[Snippet]:
    """Return the snippets of one kind, in the order of the file."""
    found = [Snippet(*match) for match in _SNIPPET.findall(README.read_text())]
    return [snippet for snippet in found if snippet.kind == kind]


def api_table() -> str:
    """Return what the broker tells clients that it supports, as a Markdown table."""
    cells = []
    for handler in sorted(HANDLERS, key=lambda handler: handler.api.key):
        api = handler.api
        name = "".join(word.capitalize() for word in api.key.name.split("_"))
        first, last = api.advertise_from, api.versions[1]
        cells.append(
            f"{name} ({int(api.key)}) | {first if first == last else f'{first} to {last}'}"
        )
    height = -(-len(cells) // _COLUMNS)
    cells += [" | "] * (height * _COLUMNS - len(cells))
    lines = ["| " + " | ".join(["API (key) | versions"] * _COLUMNS) + " |"]
    lines.append("| " + " | ".join(["---"] * 2 * _COLUMNS) + " |")
    lines += ["| " + " | ".join(cells[row::height]) + " |" for row in range(height)]
    return "\n".join(lines) + "\n"


def with_api_table(text: str) -> str:
    """Return the README's text with the table as it should be."""
    return _TABLE.sub(lambda match: match[1] + api_table() + match[2], text)


if __name__ == "__main__":
    README.write_text(with_api_table(README.read_text()))
