"""How drivers come in where that takes TLS and a login (DRIVERS.md), and how their clients say so.

For the drivers as for the tests: nothing of the package is imported here.
"""

from __future__ import annotations

import json
import os
import ssl
from typing import Any

VARIABLE = "KAFKALITE_COMPAT_SECURITY"


def wanted() -> dict[str, str]:
    """Return what the test asks for; nothing for a broker that is open to everybody."""
    found: dict[str, str] = json.loads(os.environ.get(VARIABLE, "{}"))
    return found


def for_librdkafka() -> dict[str, Any]:
    """Return settings of librdkafka."""
    given = wanted()
    if not given:
        return {}
    found: dict[str, Any] = {"security.protocol": given["protocol"]}
    if "ca" in given:
        found["ssl.ca.location"] = given["ca"]
    if "identity" in given:
        found["ssl.certificate.location"] = found["ssl.key.location"] = given["identity"]
    if "mechanism" in given:
        found["sasl.mechanism"] = given["mechanism"]
    if "user" in given:
        found |= {"sasl.username": given["user"], "sasl.password": given["password"]}
    return found


def for_python() -> dict[str, Any]:
    """Return arguments that kafka-python and aiokafka have in common."""
    given = wanted()
    if not given:
        return {}
    found: dict[str, Any] = {"security_protocol": given["protocol"]}
    if "ca" in given:
        context = ssl.create_default_context(cafile=given["ca"])
        if "identity" in given:
            context.load_cert_chain(given["identity"])
        found["ssl_context"] = context
    if "mechanism" in given:
        found |= {
            "sasl_mechanism": given["mechanism"],
            "sasl_plain_username": given["user"],
            "sasl_plain_password": given["password"],
        }
    return found
