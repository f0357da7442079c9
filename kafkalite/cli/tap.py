"""`kafkalite tap`: the requests of a broker as they are answered."""

import base64
import json
import struct
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

import click

from kafkalite.cli.output import examples
from kafkalite.http.port import DEFAULT_PORT, LOOPBACK

PCAP_HEADER: Final = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262_144, 101)
"""Microseconds, version 2.4, no link layer (LINKTYPE_RAW)."""

SEGMENT_BYTES: Final = 60_000
SYN, ACK, PUSH = 2, 16, 8


@click.command(
    epilog=examples(
        "kafkalite tap",
        "kafkalite tap --api Produce --topic orders --json",
        "kafkalite tap --pcap requests.pcap     # for Wireshark, which knows Kafka",
    )
)
@click.option(
    "--http",
    "url",
    default=f"http://{LOOPBACK}:{DEFAULT_PORT}",
    show_default=True,
    envvar="KAFKALITE_HTTP",
    show_envvar=True,
    metavar="URL",
    help="The broker's HTTP port, as its ready line names it.",
)
@click.option("--api", default="", help="Only this API, such as Produce.")
@click.option("--client-id", default="", help="Only clients whose id holds this.")
@click.option("--topic", default="", help="Only requests that name this topic.")
@click.option("--failed", is_flag=True, help="Only requests that were answered with an error.")
@click.option("--count", type=click.IntRange(min=1), help="End after so many.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON with requests and answers.")
@click.option(
    "--pcap",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write packets to this file instead; up to 1 MiB of each message.",
)
def tap(
    url: str,
    api: str,
    client_id: str,
    topic: str,
    failed: bool,
    count: int | None,
    as_json: bool,
    pcap: Path | None,
) -> None:
    """Print the requests that a kafkalite broker answers, live, until Ctrl-C."""
    query = {
        "api": api,
        "client_id": client_id,
        "topic": topic,
        "failed": str(failed).lower(),
        "whole": str(as_json).lower(),
        "raw": str(pcap is not None).lower(),
    }
    events = follow(f"{url.rstrip('/')}/api/v1/requests/follow", query)
    if pcap is None:
        for number, found in enumerate(events, 1):
            click.echo(json.dumps(found) if as_json else line_of(found))
            if number == count:
                return
        return
    with pcap.open("wb") as file:
        packets = Packets(file)
        for number, found in enumerate(events, 1):
            packets.write(found)
            file.flush()
            if number == count:
                return


def follow(url: str, query: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Yield the requests of an event stream.

    Raises:
        click.ClickException: nobody is there, or the broker refuses.
    """
    parts = urllib.parse.urlsplit(url)
    token = urllib.parse.parse_qs(parts.query).get("token", [""])[0]
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    address = urllib.parse.urlunsplit(parts._replace(query=urllib.parse.urlencode(query)))
    request = urllib.request.Request(address, headers=headers)
    name = ""
    try:
        with urllib.request.urlopen(request) as stream:
            for line in stream:
                field, _, value = line.decode().rstrip("\n").partition(": ")
                if field == "event":
                    name = value
                elif field == "data" and name == "request":
                    yield json.loads(value)
                elif field == "data" and name == "dropped":
                    click.echo(f"{json.loads(value)['dropped']} requests were too many", err=True)
    except urllib.error.HTTPError as error:
        with error:
            body = json.loads(error.read() or b"{}")
        message = body.get("error", {}).get("message", error.reason)
        raise click.ClickException(f"{parts.netloc}: {message}") from None
    except urllib.error.URLError as error:
        raise click.ClickException(f"{parts.netloc}: {error.reason}; is --http right?") from None


def line_of(found: dict[str, Any]) -> str:
    """Return a request on one line."""
    errors = f" {','.join(found['errors'])}" if found["errors"] else ""
    topics = f" {','.join(found['topics'])}" if found["topics"] else ""
    waited = f" waited {found['wait_ms']} ms" if found["wait_ms"] else ""
    return (
        f"{found['client_id'] or '-'}@{found['peer']} {found['api']} v{found['version']}"
        f"{topics} in {found['request_bytes']} out {found['response_bytes']} "
        f"took {found['total_ms']} ms{waited}{errors}"
    )


class Packets:
    """Writes requests and answers as TCP between their addresses, one stream a connection."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._sequences: dict[tuple[bytes, bytes], int] = {}
        file.write(PCAP_HEADER)

    def write(self, found: dict[str, Any]) -> None:
        """Write one request and its answer; nothing if their bytes did not come."""
        raw = found.get("raw")
        if raw is None:
            return
        host, _, port = found["peer"].rpartition(":")
        client = _address(host, int(port))
        broker = _address(*found["local"])
        micros = found["at_ms"] * 1_000
        request, answer = (base64.b64decode(each) for each in raw)
        if (client, broker) not in self._sequences:
            self._sequences[client, broker] = self._sequences[broker, client] = 1
            self._packet(client, broker, b"", micros, flags=SYN, sequence=0)
            self._packet(broker, client, b"", micros, flags=SYN | ACK, sequence=0)
        self._send(client, broker, struct.pack(">i", len(request)) + request, micros)
        self._send(broker, client, answer, micros + int(found["total_ms"] * 1_000))

    def _send(self, source: bytes, target: bytes, data: bytes, micros: int) -> None:
        for start in range(0, len(data), SEGMENT_BYTES):
            piece = data[start : start + SEGMENT_BYTES]
            self._packet(source, target, piece, micros, flags=PUSH | ACK)
            self._sequences[source, target] += len(piece)

    def _packet(
        self,
        source: bytes,
        target: bytes,
        data: bytes,
        micros: int,
        *,
        flags: int,
        sequence: int | None = None,
    ) -> None:
        number = self._sequences[source, target] if sequence is None else sequence
        known = self._sequences[target, source]
        tcp = struct.pack(
            ">HHIIBBHHH",
            *(int.from_bytes(address[4:], "big") for address in (source, target)),
            number & 0xFFFFFFFF,
            known & 0xFFFFFFFF,
            5 << 4,
            flags,
            65_535,
            0,
            0,
        )
        size = 20 + len(tcp) + len(data)
        ip = struct.pack(">BBHHHBBH", 0x45, 0, size, 0, 0, 64, 6, 0) + source[:4] + target[:4]
        seconds, rest = divmod(micros, 1_000_000)
        self._file.write(struct.pack("<IIII", seconds, rest, size, size) + ip + tcp + data)


def _address(host: str, port: int) -> bytes:
    """Return four bytes of an IPv4 address and two of the port; other hosts are 127.0.0.1."""
    parts = host.split(".")
    if len(parts) != 4 or not all(part.isdigit() for part in parts):
        parts = ["127", "0", "0", "1"]
    return bytes(map(int, parts)) + port.to_bytes(2, "big")
