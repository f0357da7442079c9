"""Settings that promise a protection which is not there: a broker that has them does not start.

Who sets `create.topic.policy.class.name` believes that topics are checked. A line in a log that
says otherwise is easily missed, so it is an error. This is the one place that says what is meant;
what comes to be supported is taken out of it.
"""

from collections.abc import Mapping
from typing import Final

from kafkalite.settings.config_def import SettingError, Value

NOT_SUPPORTED: Final[Mapping[str, str]] = {
    "create.topic.policy.class.name": "no class of Java can check the topics that are created",
    "alter.config.policy.class.name": "no class of Java can check the settings that are altered",
    "zookeeper.ssl.crl.enable": "lists of revoked certificates are not asked for",
    "zookeeper.ssl.ocsp.enable": "nobody is asked whether a certificate was revoked",
}
"""What is not there, by the setting that asks for it."""

CONTROLLER_ONLY: Final = ("controller",)


def refuse_missing_protection(values: Mapping[str, Value]) -> None:
    """Stop a start that would leave something unprotected, or without a controller quorum.

    Args:
        values: all settings by name.

    Raises:
        SettingError: names the setting, and says what to do.
    """
    for name, missing in NOT_SUPPORTED.items():
        if values[name]:
            raise SettingError(f"{name}: is not supported, {missing}; remove it if that is meant")
    if values["process.roles"] == CONTROLLER_ONLY:
        raise SettingError(
            "process.roles: there are no separate controllers, a broker decides for all; start "
            "none for this file, and name zookeeper.connect where several brokers are to find "
            "each other"
        )
