"""The command `kafkalite`: finds its subcommands, and says in one line what went wrong."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final, NamedTuple

import click

import kafkalite as package
from kafkalite.cli.output import examples
from kafkalite.client.errors import ClientError
from kafkalite.wire.errors import KafkaError

EXIT_ERROR: Final = 1
EXIT_USAGE: Final = 2
EXIT_INTERRUPTED: Final = 130
EXIT_BROKEN_PIPE: Final = 141
"""What a shell reports for a program ended by SIGINT or SIGPIPE."""


class Entry(NamedTuple):
    """Module of a subcommand, imported when used, and its line in the list."""

    module: str
    attribute: str
    summary: str


COMMANDS: Final = {
    "serve": Entry("kafkalite.cli.serve", "serve", "Run a broker (also without any command)."),
    "cluster": Entry(
        "kafkalite.cli.cluster", "cluster", "Run several brokers and a ZooKeeper on this machine."
    ),
    "topics": Entry("kafkalite.cli.topics", "topics", "List, create, describe, delete topics."),
    "produce": Entry("kafkalite.cli.produce", "produce", "Write records to a topic."),
    "consume": Entry("kafkalite.cli.consume", "consume", "Print the records of a topic."),
    "export": Entry("kafkalite.cli.fixtures", "export_topics", "Write topics as JSON lines."),
    "import": Entry("kafkalite.cli.fixtures", "import_topics", "Read topics from JSON lines."),
    "faults": Entry("kafkalite.cli.control", "faults", "Make a running broker fail on purpose."),
    "clock": Entry("kafkalite.cli.control", "clock", "Move the time of a running broker."),
    "groups": Entry(
        "kafkalite.cli.groups", "groups", "List groups, show their lag, reset offsets."
    ),
    "configs": Entry("kafkalite.cli.configs", "configs", "Show and change settings."),
    "users": Entry("kafkalite.cli.users", "users", "Users that log in: list, add, remove."),
    "quotas": Entry(
        "kafkalite.cli.quotas", "quotas", "How much clients may use: list, set, remove."
    ),
    "acls": Entry("kafkalite.cli.acls", "acls", "Who may do what: allow, deny, list, explain."),
    "client-config": Entry(
        "kafkalite.cli.client_config", "client_config", "What to paste into a client of --secure."
    ),
    "health": Entry("kafkalite.cli.health", "health", "Tell whether a broker serves clients."),
    "console": Entry("kafkalite.cli.console", "console", "Serve the web console for any Kafka."),
    "tap": Entry("kafkalite.cli.tap", "tap", "Show the requests of a broker as they come."),
    "top": Entry("kafkalite.cli.top", "top", "Show topics and lag, again and again."),
    "doctor": Entry("kafkalite.cli.doctor", "doctor", "Find out why clients hang, and what to do."),
    "dump-log": Entry("kafkalite.cli.dump_log", "dump_log", "Print the files of a data directory."),
    "sim": Entry("kafkalite.cli.sim", "sim", "Brokers in a simulated world, by seed."),
    "pipeline": Entry("kafkalite.pipeline.cli", "pipeline", "Spark jobs: archive, replay, audit."),
}


class LazyCommands(click.Group):
    """A group that imports a subcommand when it is run: a broker starts without a client."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order in which the help shows them."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a subcommand; None if there is none of this name."""
        del ctx
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        command = getattr(import_module(entry.module), entry.attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of subcommands without importing them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in COMMANDS.items()])


def _tell_version(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    del parameter
    if wanted:
        click.echo(f"kafkalite {package.__version__}{' (compiled)' * package.is_compiled()}")
        context.exit()


@click.group(
    epilog=examples(
        "kafkalite                           start a broker on 127.0.0.1:9092",
        "kafkalite topics create orders -p 3",
        "kafkalite produce orders -m hello",
        "kafkalite consume orders",
    ),
    cls=LazyCommands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_tell_version,
    help="Show the version and exit.",
)
@click.pass_context
def kafkalite(context: click.Context) -> None:
    """A Kafka broker in one process, and tools for any Kafka cluster."""
    if context.invoked_subcommand is None:
        command = kafkalite.get_command(context, "serve")
        assert command is not None
        with command.make_context("serve", [], parent=context) as serving:
            command.invoke(serving)


def run(arguments: Sequence[str]) -> int:
    """Run a command line; return the exit code. What is not a bug ends in one line on stderr."""
    if not __debug__:
        return _fail(package.NEEDS_ASSERTIONS, EXIT_ERROR)
    try:
        code = kafkalite.main(list(arguments), prog_name="kafkalite", standalone_mode=False)
        sys.stdout.flush()
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "kafkalite"
        return _fail(f"{error.format_message()} See '{path} --help'.", EXIT_USAGE)
    except click.ClickException as error:
        return _fail(error.format_message(), EXIT_ERROR)
    except (click.Abort, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has seen enough; the interpreter must not flush it at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_BROKEN_PIPE
    except (ClientError, KafkaError) as error:
        return _fail(str(error), EXIT_ERROR)
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        return _fail(f"{error.strerror or error}{where}", EXIT_ERROR)
    return code if isinstance(code, int) else 0


def _fail(message: str, code: int) -> int:
    line = " ".join(message.split())
    print(f"kafkalite: {line}", file=sys.stderr)
    return code
