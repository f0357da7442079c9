"""What README.md and docs say is so: snippets are run, command lines parsed, the site is built.

The snippets of other languages are run by compat_tests/test_documentation.py.
"""

import os
import re
import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import click
import pytest

from kafkalite.cli.main import COMMANDS
from kafkalite.testing import Broker
from tests.documentation import DOCS, PAGES, ROOT, reference, snippets

WRITE = "python3 tests/documentation.py writes it anew"

PROGRAMS = ["faults", "clock", "registry", "security"]
ALONE = [snippet for kind in PROGRAMS for snippet in snippets(kind)]
"""Programs that bring their own broker."""

IN_COMPAT_TESTS = {"java", "kcat", "node", "go", "spark"}
LANGUAGES = {"python", "sh", "java", "js", "go"}


@pytest.fixture(scope="module")
def broker():
    with Broker() as running:
        yield running


def run(command, bootstrap="nowhere", **options):
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "KAFKALITE_BOOTSTRAP": bootstrap, "PATH": path}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=60, **options
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# --- Snippets ------------------------------------------------------------------------------------


def test_every_snippet_for_users_is_run():
    """Decisions and architecture talk to who builds it."""
    for page in PAGES:
        if page.parent.name == "decisions" or page.name in {"architecture.md", "rules.md"}:
            continue
        text = page.read_text()
        blocks = [
            name for name in re.findall(r"^```(\w+)$", text, re.MULTILINE) if name in LANGUAGES
        ]
        assert len(blocks) == text.count("<!-- run: "), f"{page}: a block lacks <!-- run: ... -->"
    run_here = {"python", "pytest", "shell", "cluster", *PROGRAMS}
    assert {snippet.kind for snippet in snippets()} == run_here | IN_COMPAT_TESTS


@pytest.mark.slow
@pytest.mark.parametrize("snippet", snippets("python"), ids=str)
def test_python_does_what_it_shows(broker, snippet):
    broker.reset()
    output = run([sys.executable, "-c", snippet.at(broker.bootstrap)])
    assert "b'customer-7'" in output
    assert "b'hello'" in output


@pytest.mark.slow
@pytest.mark.parametrize("snippet", snippets("pytest"), ids=str)
def test_fixtures_of_pytest_do_what_it_shows(tmp_path, snippet):
    file = tmp_path / "test_orders.py"
    file.write_text(snippet.text)
    output = run([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(file)])
    assert f"{snippet.text.count('def test_')} passed" in output


@pytest.mark.slow
@pytest.mark.parametrize("snippet", ALONE, ids=str)
def test_program_does_what_it_shows(snippet):
    run([sys.executable, "-c", snippet.text])


@pytest.mark.slow
@pytest.mark.xdist_group("cluster")
def test_cluster_does_what_it_shows():
    (snippet,) = snippets("cluster")
    run([sys.executable, "-c", snippet.text])


@pytest.mark.slow
@pytest.mark.parametrize("snippet", snippets("shell"), ids=str)
def test_command_lines_do_what_they_show(broker, snippet):
    broker.reset()
    output = run(["sh", "-e", "-c", snippet.text], broker.bootstrap)
    assert "key=customer-7  hello" in output
    assert "orders: 3 partitions, 1 offset" in output


def console_lines():
    for page in PAGES:
        for line in re.findall(r"^(?:\$ |    )(kafkalite .*)$", page.read_text(), re.MULTILINE):
            yield page.name, line.split(" # ")[0].split(" | ")[0].split(" > ")[0]


@pytest.mark.parametrize(("page", "line"), sorted(set(console_lines())))
def test_command_line_is_one_that_kafkalite_takes(page, line):
    if line.startswith("kafkalite ready:") or not line.removeprefix("kafkalite").strip():
        return
    _, name, *arguments = shlex.split(line)
    entry = COMMANDS[name]
    command = getattr(import_module(entry.module), entry.attribute)
    while isinstance(command, click.Group):
        command = command.commands[arguments.pop(0)]
    try:
        command.make_context(name, arguments)
    except click.BadParameter as error:
        if "does not exist" not in str(error):  # a file of the reader's
            pytest.fail(f"{page}: {line}: {error}")
    except click.exceptions.Exit:
        pass  # --help


def test_commands_that_sentences_name_are_there():
    for page in (*PAGES, ROOT / "CONTRIBUTING.md"):
        for words in re.findall(r"`kafkalite ([a-z][^`]*)`", page.read_text()):
            name, *more = words.split()
            if name == "ready:":
                continue
            assert set(name.split("|")) <= set(COMMANDS), f"{page.name}: kafkalite {words}"
            entry = COMMANDS[name.split("|")[0]]
            command = getattr(import_module(entry.module), entry.attribute)
            if isinstance(command, click.Group) and more and more[0].islower():
                assert more[0] in command.commands, f"{page.name}: kafkalite {words}"


# --- Pages of reference, the site ----------------------------------------------------------------


@pytest.mark.parametrize("page", reference())
def test_page_of_reference_is_what_the_program_says(page):
    assert (DOCS / page).read_text() == reference()[page], WRITE


@pytest.mark.slow
def test_site_is_built_without_a_warning(tmp_path):
    """A link that leads nowhere, or to a heading that is gone, is one."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    run(command, cwd=ROOT)
    assert "sequenceDiagram" in (tmp_path / "architecture" / "index.html").read_text()
    search = (tmp_path / "search" / "search_index.json").read_text()
    assert "group.initial.rebalance.delay.ms" in search


def test_readme_links_lead_somewhere():
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        for link in re.findall(r"\]\(([^)#]+)[^)]*\)", (ROOT / name).read_text()):
            assert link.startswith("http") or (ROOT / link).exists(), f"{name}: {link}"


TESTS_NAMED = re.findall(
    r"`((?:tests|compat_tests)/\S+\.py)[^`]* -k (\w+)`", (DOCS / "reliability.md").read_text()
)


@pytest.mark.parametrize(("file", "word"), TESTS_NAMED, ids=lambda value: value)
def test_a_promise_names_the_tests_that_show_it(file, word):
    assert re.search(rf"(def|class) [Tt]est\w*{word}", (ROOT / file).read_text())
