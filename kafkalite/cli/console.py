"""`kafkalite console`: the web console for any Kafka."""

import os
import signal
from functools import partial

import click
import trio

from kafkalite.cli.options import with_cluster
from kafkalite.cli.output import examples
from kafkalite.cli.parameters import listen_address, registry_option
from kafkalite.client.cluster import Client
from kafkalite.console.serving import serve_console
from kafkalite.http.port import DEFAULT_PORT, LOOPBACK, HttpAddress, HttpPortError


@click.command(
    epilog=examples(
        "kafkalite console -b broker:9092",
        "kafkalite console -b broker:9092 --schema-registry http://registry:8081",
        "kafkalite console -b broker:9092 --write --listen 127.0.0.1:8080",
    )
)
@click.option(
    "--listen",
    metavar="HOST:PORT",
    callback=listen_address,
    help=f"Where browsers find it.  [default: {LOOPBACK}:{DEFAULT_PORT} or the next free port]",
)
@click.option("--write", is_flag=True, help="Let the pages change things; else they only look.")
@registry_option
@with_cluster
def console(
    client: Client, listen: tuple[str, int] | None, write: bool, registry_url: str | None
) -> None:
    """Serve the web console for any Kafka, until Ctrl-C.

    When browsers can connect, one line is printed on standard output:

    kafkalite console ready: http://127.0.0.1:9080
    """
    address = HttpAddress(host=LOOPBACK, port=DEFAULT_PORT, may_move=True)
    token = None
    if listen is not None:
        address = HttpAddress(host=listen[0] or "0.0.0.0", port=listen[1])
        if not address.is_loopback:
            token = os.urandom(16).hex()
    schemas = None
    if registry_url is not None:
        # Most consoles do without it.
        from kafkalite.registry.lookup import remote

        try:
            schemas = remote(registry_url)
        except ValueError as error:
            raise click.UsageError(str(error)) from None
    client.any_broker()  # says at once that nobody is there
    end = "" if token is None else f"/?token={token}"

    async def run() -> None:
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(
                    partial(
                        serve_console,
                        client,
                        address,
                        can_write=write,
                        token=token,
                        schemas=schemas,
                        on_ready=lambda url: click.echo(f"kafkalite console ready: {url}{end}"),
                    )
                )
                async for _ in signals:
                    nursery.cancel_scope.cancel()

    try:
        trio.run(run)
    except* HttpPortError as group:
        raise click.ClickException(str(group.exceptions[0])) from None
