"""Refusals of the registry, with the codes that its clients know."""

from enum import IntEnum


class RegistryErrorCode(IntEnum):
    """Codes of Confluent's registry; their first three digits are the HTTP status."""

    SUBJECT_NOT_FOUND = 40401
    VERSION_NOT_FOUND = 40402
    SCHEMA_NOT_FOUND = 40403
    SUBJECT_SOFT_DELETED = 40404
    SUBJECT_NOT_SOFT_DELETED = 40405
    VERSION_SOFT_DELETED = 40406
    VERSION_NOT_SOFT_DELETED = 40407
    SUBJECT_COMPATIBILITY_NOT_CONFIGURED = 40408
    SUBJECT_MODE_NOT_CONFIGURED = 40409
    INCOMPATIBLE_SCHEMA = 409
    INVALID_SCHEMA = 42201
    INVALID_VERSION = 42202
    INVALID_COMPATIBILITY = 42203
    INVALID_MODE = 42204
    OPERATION_NOT_PERMITTED = 42205
    REFERENCE_EXISTS = 42206
    STORE = 50001
    STORE_TIMED_OUT = 50002
    FORWARDING = 50003

    @property
    def http_status(self) -> int:
        """The status of the answer."""
        return int(str(int(self))[:3])


class RegistryError(Exception):
    """A request that the registry refuses."""

    def __init__(self, code: RegistryErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def subject_not_found(subject: str) -> RegistryError:
    """Return the refusal for a subject that is not there."""
    return RegistryError(RegistryErrorCode.SUBJECT_NOT_FOUND, f"Subject '{subject}' not found.")


def version_not_found(version: int | str) -> RegistryError:
    """Return the refusal for a version that is not there."""
    return RegistryError(RegistryErrorCode.VERSION_NOT_FOUND, f"Version {version} not found.")


def schema_not_found() -> RegistryError:
    """Return the refusal for a schema that is not there."""
    return RegistryError(RegistryErrorCode.SCHEMA_NOT_FOUND, "Schema not found")


def invalid_schema(why: str) -> RegistryError:
    """Return the refusal for text that is no schema."""
    return RegistryError(RegistryErrorCode.INVALID_SCHEMA, f"Invalid schema: {why}")


def check_characters(text: str) -> None:
    """Refuse halves of characters, which nobody could store.

    Raises:
        RegistryError: INVALID_SCHEMA.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise invalid_schema(f"half a character at {error.start}") from None
