"""Between the registry's records and the JSON in `_schemas`, as Confluent's registry writes it."""

import json
from collections.abc import Mapping
from typing import Any, Final

from kafkalite.coordinator.shard import StoredRecord
from kafkalite.registry.errors import RegistryError
from kafkalite.registry.model import (
    ClearSubjectKey,
    Compatibility,
    ConfigKey,
    DeleteSubjectKey,
    Mode,
    ModeKey,
    NoopKey,
    RegistryKey,
    RegistryValue,
    Schema,
    SchemaKey,
    SchemaType,
    SchemaValue,
    read_references,
    type_and_references,
)

NOT_UNDERSTOOD: Final = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    RegistryError,
    TypeError,
    ValueError,
)
"""What reading JSON of another shape raises: any client may write to the topic."""


class RegistryCodec:
    """A `coordinator.shard.RecordCodec`."""

    def encode(self, record: StoredRecord) -> tuple[bytes, bytes | None]:
        """Return key and value."""
        key: Any = record.key
        value: Any = record.value
        return _dump(_key_json(key)), _value_bytes(key, value)

    def decode(self, key: bytes, value: bytes | None) -> StoredRecord | None:
        """Return the record; None for what is not understood, which is passed over."""
        try:
            said = json.loads(key)
            decoded = _read_key(said)
            if decoded is None:
                return None
            hash(decoded)  # a subject may be a list
            told = json.loads(value) if value else None  # Karapace deletes with empty values
            stored = _read_value(decoded, told)
            hash(stored)
            return StoredRecord(decoded, stored)
        except NOT_UNDERSTOOD:
            return None


def _key_json(key: RegistryKey) -> Mapping[str, Any]:
    match key:
        case SchemaKey(subject, version):
            return {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}
        case ConfigKey(named):
            return {"keytype": "CONFIG", "subject": named, "magic": 0}
        case ModeKey(named):
            return {"keytype": "MODE", "subject": named, "magic": 0}
        case DeleteSubjectKey(subject):
            return {"keytype": "DELETE_SUBJECT", "subject": subject, "magic": 0}
        case ClearSubjectKey(subject):
            return {"keytype": "CLEAR_SUBJECT", "subject": subject, "magic": 0}
        case NoopKey():
            return {"keytype": "NOOP", "magic": 0}


def _value_bytes(key: RegistryKey, value: RegistryValue) -> bytes | None:
    match value:
        case None:
            return None
        case SchemaValue():
            assert isinstance(key, SchemaKey)
            told = {
                "subject": key.subject,
                "version": key.version,
                "id": value.schema_id,
                **type_and_references(value.schema),
                "schema": value.schema.text,
                "deleted": value.is_deleted,
            }
            return _dump(told)
        case Compatibility():
            return _dump({"compatibilityLevel": value.value})
        case Mode():
            return _dump({"mode": value.value})
        case int() if isinstance(key, NoopKey):
            return _dump({"lastId": value})
        case int():
            assert isinstance(key, DeleteSubjectKey)
            return _dump({"subject": key.subject, "version": value})


def _read_key(said: Mapping[str, Any]) -> RegistryKey | None:
    match said["keytype"]:
        case "SCHEMA":
            return SchemaKey(str(said["subject"]), int(said["version"]))
        case "CONFIG":
            return ConfigKey(said.get("subject"))
        case "MODE":
            return ModeKey(said.get("subject"))
        case "DELETE_SUBJECT":
            return DeleteSubjectKey(str(said["subject"]))
        case "CLEAR_SUBJECT":
            return ClearSubjectKey(str(said["subject"]))
        case "NOOP":
            return NoopKey()
        case _:
            return None


def _read_value(key: RegistryKey, said: Mapping[str, Any] | None) -> RegistryValue:
    if said is None:
        return None
    match key:
        case SchemaKey():
            schema = Schema(
                SchemaType(said.get("schemaType", "AVRO")),
                str(said["schema"]),
                read_references(said.get("references")),
            )
            return SchemaValue(int(said["id"]), schema, bool(said.get("deleted", False)))
        case ConfigKey():
            return Compatibility(said["compatibilityLevel"])
        case ModeKey():
            return Mode(said["mode"])
        case DeleteSubjectKey():
            return int(said["version"])
        case NoopKey():
            return int(said["lastId"])
        case _:
            return None


def _dump(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
