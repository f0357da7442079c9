#!/usr/bin/env python3
"""What programs look after in README.md and docs: snippets that tests run, pages of reference.

python3 tests/documentation.py       writes the pages of reference anew
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import click  # noqa: E402 - this file is a program, too

from kafkalite.api import HANDLERS  # noqa: E402
from kafkalite.cli.main import COMMANDS  # noqa: E402
from kafkalite.settings import registry as tables  # noqa: E402
from kafkalite.settings.config_def import Setting, Update, format_value  # noqa: E402
from kafkalite.settings.documentation import documentation  # noqa: E402
from kafkalite.settings.kafkalite import PROFILES  # noqa: E402

DOCS = ROOT / "docs"
PAGES = (ROOT / "README.md", *sorted(DOCS.rglob("*.md")))
ADDRESS = "127.0.0.1:9092"

_SNIPPET = re.compile(r"<!-- run: ([^ \n]+) ?([^ \n]*) -->\n```\w+\n(.*?)```\n", re.DOTALL)
_WRITTEN = "<!-- Written by `python3 tests/documentation.py`; do not edit. -->\n"


@dataclass(frozen=True)
class Snippet:
    """A block that is to be run, as its comment says."""

    page: str
    kind: str
    argument: str
    text: str

    def at(self, bootstrap: str) -> str:
        """Return the text with another address of the broker in it."""
        return self.text.replace(ADDRESS, bootstrap)

    def __str__(self) -> str:
        return f"{self.page}-{self.kind}{self.argument}"


def snippets(kind: str | None = None) -> list[Snippet]:
    """Return the snippets of one kind, or all, in the order of the pages."""
    found = [
        Snippet(page.relative_to(ROOT).as_posix(), *match)
        for page in PAGES
        for match in _SNIPPET.findall(page.read_text())
    ]
    return [snippet for snippet in found if kind in (None, snippet.kind)]


def reference() -> dict[str, str]:
    """Return the pages of reference by path below docs, as they should be."""
    return {
        "decisions/index.md": "".join(_decisions()),
        "reference/apis.md": "".join(_apis()),
        "reference/command-line.md": "".join(_command_line()),
        "reference/settings.md": "".join(_settings()),
    }


# --- Decisions -----------------------------------------------------------------------------------


def _decisions() -> Iterator[str]:
    yield "# Decisions\n\n" + _WRITTEN
    yield "\nWhy single things are as they are, what else was thought of, and what it costs.\n\n"
    for page in sorted((DOCS / "decisions").glob("0*.md")):
        title = page.read_text().splitlines()[0].removeprefix("# ").lstrip("0123456789.: ")
        yield f"- {page.name[:4]} [{title[0].upper()}{title[1:]}]({page.name})\n"


# --- APIs ----------------------------------------------------------------------------------------


def _apis() -> Iterator[str]:
    yield "# Supported APIs\n\n" + _WRITTEN
    yield (
        "\nThe broker's own list, which is also what it tells clients (ApiVersions). Of Produce,\n"
        "versions 3 and later are accepted; old versions of librdkafka stop compressing where\n"
        "0 is not told. A request for any other API, or version, closes the connection, as in\n"
        "Kafka; but ApiVersions itself is answered in version 0.\n\n"
        "| key | API | versions | |\n| --- | --- | --- | --- |\n"
    )
    for handler in sorted(HANDLERS, key=lambda handler: handler.api.key):
        api = handler.api
        name = "".join(word.capitalize() for word in api.key.name.split("_"))
        first, last = api.advertise_from, api.versions[1]
        versions = f"{first}" if first == last else f"{first} to {last}"
        notes = [
            *(["answered by the controller"] if handler.forward_to_controller else []),
            *(["between brokers only"] if handler.inter_broker_only else []),
        ]
        yield f"| {int(api.key)} | {name} | {versions} | {', '.join(notes)} |\n"


# --- Settings ------------------------------------------------------------------------------------

_UPDATES = {
    Update.READ_ONLY: "at the start",
    Update.PER_BROKER: "any time, one broker",
    Update.CLUSTER_WIDE: "any time",
}


def _settings() -> Iterator[str]:
    yield "# Settings\n\n" + _WRITTEN
    yield (
        "\nNames and defaults are Apache Kafka's, except those that begin with `kafkalite.`. What\n"
        "a profile has instead is below; [how to set them](../start.md#settings).\n"
        "A setting *without effect* is accepted, and a start warns of it.\n\n"
        "## Profiles\n\n| setting | Kafka | `dev` | `test` |\n| --- | --- | --- | --- |\n"
    )
    dev, test = PROFILES["dev"], PROFILES["test"]
    for name in sorted(dev.keys() | test.keys()):
        setting = tables.BROKER[name]
        yield (
            f"| `{name}` | {_code(format_value(setting.default))} | "
            f"{_code(dev.get(name, format_value(setting.default)))} | "
            f"{_code(test.get(name, format_value(setting.default)))} |\n"
        )
    for title, table, is_broker in (
        ("Broker", tables.BROKER, True),
        ("Topic", tables.TOPIC, False),
        ("Group", tables.GROUP, False),
        ("Client metrics", tables.CLIENT_METRICS, False),
    ):
        yield f"\n## {title}\n\n| setting | default | "
        yield (
            "may change | |\n| --- | --- | --- | --- |\n"
            if is_broker
            else "|\n| --- | --- | --- |\n"
        )
        for setting in sorted(table.values()):
            if not setting.internal:
                yield _setting(setting, is_broker=is_broker)


def _setting(setting: Setting, *, is_broker: bool) -> str:
    change = f"{_UPDATES[setting.update]} | " if is_broker else ""
    default = _code(format_value(setting.default))
    allowed = f" One of: {', '.join(setting.choices)}." if setting.choices else ""
    text = documentation(setting._replace(inert=False)).replace("|", "\\|") + allowed
    return (
        f"| `{setting.name}` | {default} | {change}{'*Without effect.* ' * setting.inert}{text} |\n"
    )


def _code(value: str | None) -> str:
    return f"`{value}`" if value else "" if value is None else "empty"


# --- Command line --------------------------------------------------------------------------------


def _command_line() -> Iterator[str]:
    yield "# Command line\n\n" + _WRITTEN
    yield (
        "\n`kafkalite COMMAND --help` says the same. Without a command, `kafkalite` is\n"
        "`kafkalite serve`. Commands that take `-b HOST:PORT` work against any Kafka.\n\n"
    )
    for name, entry in COMMANDS.items():
        yield f"- [`{name}`](#kafkalite-{name}): {entry.summary}\n"
    for name, entry in COMMANDS.items():
        command = getattr(import_module(entry.module), entry.attribute)
        yield from _command(f"kafkalite {name}", command, level=2)


def _command(path: str, command: click.Command, *, level: int) -> Iterator[str]:
    yield f"\n{'#' * level} {path}\n\n{_paragraphs(command.help)}\n"
    if isinstance(command, click.Group):
        for name, subcommand in command.commands.items():
            yield from _command(f"{path} {name}", subcommand, level=level + 1)
        return
    arguments = [each for each in command.params if isinstance(each, click.Argument)]
    options = [each for each in command.params if isinstance(each, click.Option)]
    words = [path, *(["[OPTIONS]"] if options else []), *map(_argument, arguments)]
    yield f"\n```text\n{' '.join(words)}\n```\n"
    if options:
        yield "\n| option | |\n| --- | --- |\n"
    for option in options:
        if not option.hidden:
            yield f"| {_names(option)} | {_help(option)} |\n"
    if command.epilog:
        lines = [line.strip() for line in command.epilog.replace("\b", "").splitlines()]
        shown = "\n".join(line for line in lines if line and line != "Examples:")
        yield f"\n```text\n{shown}\n```\n"


def _paragraphs(text: str | None) -> str:
    paragraphs = (text or "").replace("\b\n", "").split("\n\n")
    return "\n\n".join(" ".join(each.split()).replace("<", "&lt;") for each in paragraphs).strip()


def _argument(argument: click.Argument) -> str:
    name = (argument.metavar or argument.name or "").upper()
    many = "..." if argument.nargs == -1 else ""
    return f"{name}{many}" if argument.required else f"[{name}]{many}"


def _names(option: click.Option) -> str:
    names = ", ".join(f"`{name}`" for name in option.opts)
    if option.secondary_opts:
        names += " / " + ", ".join(f"`{name}`" for name in option.secondary_opts)
    if option.is_flag or option.count:
        return names
    if option.metavar:
        return f"{names} {option.metavar}".replace("|", "\\|")
    if isinstance(option.type, click.Choice):
        return f"{names} {', '.join(map(str, option.type.choices))}"
    return f"{names} {option.type.name.upper()}"


def _help(option: click.Option) -> str:
    text = " ".join((option.help or "").split())
    if option.show_default and not callable(option.default) and option.default is not None:
        text += f" [default: {option.default}]"
    return text.replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    for page, page_text in reference().items():
        (DOCS / page).parent.mkdir(exist_ok=True)
        (DOCS / page).write_text(page_text)
