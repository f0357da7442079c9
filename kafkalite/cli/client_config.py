"""`kafkalite client-config`: what to paste into a client of a broker that runs with `--secure`."""

from collections.abc import Callable
from typing import Final, NamedTuple

import click

from kafkalite.cli.output import examples
from kafkalite.security.development import FIRST_USER, MECHANISM, SecureFolder
from kafkalite.settings.config_def import SettingError


class Place(NamedTuple):
    """Settings that a client has to know; paths are absolute."""

    bootstrap: str
    authority: str
    user: str
    password: str


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _jaas(place: Place) -> str:
    return (
        "org.apache.kafka.common.security.scram.ScramLoginModule required "
        f'username="{_escaped(place.user)}" password="{_escaped(place.password)}";'
    )


def _java_lines(place: Place) -> list[tuple[str, str]]:
    return [
        ("bootstrap.servers", place.bootstrap),
        ("security.protocol", "SASL_SSL"),
        ("sasl.mechanism", MECHANISM),
        ("sasl.jaas.config", _jaas(place)),
        ("ssl.truststore.type", "PEM"),
        ("ssl.truststore.location", place.authority),
    ]


def _properties(pairs: list[tuple[str, str]]) -> str:
    """Return a Java properties file: a backslash stands for itself only if it is doubled."""
    return "".join(f"{name}={value}\n".replace("\\", "\\\\") for name, value in pairs)


def java(place: Place) -> str:
    """A properties file for producers, consumers and Kafka's tools (`--command-config`)."""
    return "# client.properties, also for the option --command-config of Kafka's tools\n" + (
        _properties(_java_lines(place))
    )


def librdkafka_settings(place: Place) -> dict[str, str]:
    """Return settings for librdkafka and what is built on it."""
    return {
        "bootstrap.servers": place.bootstrap,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": MECHANISM,
        "sasl.username": place.user,
        "sasl.password": place.password,
        "ssl.ca.location": place.authority,
    }


def librdkafka(place: Place) -> str:
    """Lines of `name=value` for librdkafka: kcat -F, confluent-kafka, rdkafka in any language."""
    lines = "".join(f"{name}={value}\n" for name, value in librdkafka_settings(place).items())
    # It sends a wrong nonce, which Apache Kafka 4 refuses too (CVE-2024-56128).
    return f"""\
# librdkafka, for example kcat -F FILE
# librdkafka before 2.6.1, such as that of Debian 12's kcat, needs -X sasl.mechanism=PLAIN
{lines}"""


def python(place: Place) -> str:
    """Python with confluent-kafka; kafka-python and aiokafka below."""
    lines = "".join(f"    {n!r}: {v!r},\n" for n, v in librdkafka_settings(place).items())
    return f"""\
# confluent-kafka
conf = {{
{lines}}}

# kafka-python
conf = dict(
    bootstrap_servers={place.bootstrap!r},
    security_protocol="SASL_SSL",
    sasl_mechanism={MECHANISM!r},
    sasl_plain_username={place.user!r},
    sasl_plain_password={place.password!r},
    ssl_cafile={place.authority!r},
)

# aiokafka: the same, with ssl_context instead of ssl_cafile
# ssl_context=aiokafka.helpers.create_ssl_context(cafile={place.authority!r})
"""


def node(place: Place) -> str:
    """JavaScript with KafkaJS."""
    return f"""\
// KafkaJS
const kafka = new Kafka({{
  brokers: ["{place.bootstrap}"],
  ssl: {{ ca: [require("fs").readFileSync("{_escaped(place.authority)}", "utf-8")] }},
  sasl: {{
    mechanism: "{MECHANISM.lower()}",
    username: "{_escaped(place.user)}",
    password: "{_escaped(place.password)}",
  }},
}});
"""


def go(place: Place) -> str:
    """Go with franz-go."""
    return f"""\
// franz-go
pem, err := os.ReadFile("{_escaped(place.authority)}")
if err != nil {{
	log.Fatal(err)
}}
roots := x509.NewCertPool()
roots.AppendCertsFromPEM(pem)
client, err := kgo.NewClient(
	kgo.SeedBrokers("{place.bootstrap}"),
	kgo.DialTLSConfig(&tls.Config{{RootCAs: roots}}),
	kgo.SASL(scram.Auth{{
		User: "{_escaped(place.user)}",
		Pass: "{_escaped(place.password)}",
	}}.AsSha512Mechanism()),
)
"""


def spring(place: Place) -> str:
    """Spring Boot's application.properties."""
    pairs = []
    for name, value in _java_lines(place):
        prefix = "" if name == "bootstrap.servers" else "properties."
        pairs.append((f"spring.kafka.{prefix}{name}".replace("p.servers", "p-servers"), value))
    return "# application.properties\n" + _properties(pairs)


FORMS: Final[dict[str, Callable[[Place], str]]] = {
    "java": java,
    "librdkafka": librdkafka,
    "python": python,
    "node": node,
    "go": go,
    "spring": spring,
}


def location_of(data_dir: str, user: str, bootstrap: str | None = None) -> Place:
    """Return what a client of a broker has to know.

    Raises:
        SettingError: there was no such broker, or the user's password is not kept.
    """
    folder = SecureFolder.of(data_dir)
    address = bootstrap or folder.address()
    users = folder.users()
    if user not in users:
        known = ", ".join(users) or "nobody"
        raise SettingError(f"{folder.path}: the password of {user} is not kept, that of {known} is")
    return Place(address, str(folder.authority), user, users[user])


@click.command(
    "client-config",
    epilog=examples(
        "kafkalite client-config java > client.properties",
        "kafkalite client-config librdkafka --data-dir /var/tmp/kafka",
    ),
)
@click.argument("form", type=click.Choice(list(FORMS)))
@click.option(
    "--data-dir",
    default="kafkalite-data",
    show_default=True,
    metavar="DIR",
    help="That of the broker, which was started with --secure.",
)
@click.option("--user", default=FIRST_USER, show_default=True, help="Who is to log in.")
@click.option(
    "--bootstrap",
    metavar="HOST:PORT",
    help="Where the broker listens, seen from the client.  [default: where it does, or did last]",
)
def client_config(form: str, data_dir: str, user: str, bootstrap: str | None) -> None:
    """Print the settings by which a client reaches a broker that runs with --secure."""
    try:
        place = location_of(data_dir, user, bootstrap)
    except SettingError as error:
        raise click.ClickException(str(error)) from None
    click.echo(FORMS[form](place), nl=False)
