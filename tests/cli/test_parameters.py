"""What several commands read in the same way."""

import subprocess
import sys

import click
import pytest

from kafkalite.cli.parameters import listen_address, make_data_folder, pairs

OPTION = click.Option(["--some"])
CONTEXT = click.Context(click.Command("test"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("9093", ("127.0.0.1", 9093)),
        ("0", ("127.0.0.1", 0)),
        (":9093", ("", 9093)),
        ("0.0.0.0:9092", ("0.0.0.0", 9092)),
        ("localhost:0", ("localhost", 0)),
        ("[::1]:9092", ("::1", 9092)),
    ],
)
def test_address_is_read(text, expected):
    assert listen_address(CONTEXT, OPTION, text) == expected


@pytest.mark.parametrize(
    "text", ["", "host", "host:port", "host:", "::1:9092", "[::1:9092", "h:65536", "PLAIN://h:1"]
)
def test_address_that_is_none_is_refused(text):
    with pytest.raises(click.BadParameter, match="is no address; write HOST:PORT"):
        listen_address(CONTEXT, OPTION, text)


def test_pairs_are_read_without_the_space_around_them():
    assert pairs(CONTEXT, OPTION, ("a=1", " b = c=d ", "e=")) == {"a": "1", "b": "c=d", "e": ""}


@pytest.mark.parametrize("text", ["a", "=1", " =1"])
def test_what_is_no_pair_is_refused(text):
    with pytest.raises(click.BadParameter, match="is not NAME=VALUE"):
        pairs(CONTEXT, OPTION, (text,))


def test_data_folder_is_invisible_to_git_and_left_alone_when_it_is_there(tmp_path):
    folder = tmp_path / "deep" / "data"
    make_data_folder(folder)
    assert (folder / ".gitignore").read_text().endswith("*\n")
    (folder / ".gitignore").write_text("own")
    make_data_folder(folder)
    assert (folder / ".gitignore").read_text() == "own"


@pytest.mark.slow
def test_no_client_is_imported():
    code = "import kafkalite.cli.parameters, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not [name for name in done.stdout.split() if name.startswith("kafkalite.client")]
