"""Avro data as JSON and back, with names and values as a person writes them.

A union's value stands for itself; the form with the branch's name, {"string": "x"}, is read too.
Bytes are one character a byte, as in Avro's own JSON. Dates, times and timestamps are ISO 8601,
decimals and UUIDs are text.
"""

import datetime as dt
import io
import math
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

if TYPE_CHECKING:
    from avro.schema import Schema as AvroSchema

DEPTH_MAX: Final = 200
INTEGER_BITS: Final = {"int": 31, "long": 63}

_TEXT: Final[dict[str, Callable[[str], Any]]] = {
    "date": dt.date.fromisoformat,
    "time-millis": dt.time.fromisoformat,
    "time-micros": dt.time.fromisoformat,
    "timestamp-millis": lambda text: _moment(text),
    "timestamp-micros": lambda text: _moment(text),
    "uuid": lambda text: str(UUID(text)),
}


def decode(schema: "AvroSchema", data: bytes) -> Any:
    """Return the JSON value of Avro's binary form.

    Raises:
        ValueError: it is not of this schema, or there are bytes behind it.
    """
    from avro.errors import AvroException
    from avro.io import BinaryDecoder, DatumReader

    source = io.BytesIO(data)
    try:
        datum = DatumReader(schema, schema).read(BinaryDecoder(source))
    except (AvroException, AssertionError, IndexError, OverflowError, TypeError, MemoryError,
            RecursionError, EOFError) as error:  # fmt: skip
        raise ValueError(f"no Avro of this schema: {str(error) or type(error).__name__}") from None
    rest = len(data) - source.tell()
    if rest:
        raise ValueError(f"no Avro of this schema: {rest} bytes are left over")
    return to_json(datum)


def to_json(datum: Any) -> Any:
    """Return what Apache's library reads as JSON has it."""
    match datum:
        case dict():
            return {str(name): to_json(value) for name, value in datum.items()}
        case list():
            return [to_json(each) for each in datum]
        case bytes():
            return datum.decode("latin-1")
        case dt.datetime() | dt.date() | dt.time():
            return datum.isoformat()
        case Decimal() | UUID():
            return str(datum)
        case float() if not math.isfinite(datum):
            return str(datum)
        case _:
            return datum


def encode(schema: "AvroSchema", value: Any) -> bytes:
    """Return Avro's binary form of a JSON value.

    Raises:
        ValueError: it does not fit; the message says where.
    """
    from avro.errors import AvroException
    from avro.io import BinaryEncoder, DatumWriter

    output = io.BytesIO()
    try:
        datum = to_datum(schema, value, "$", 0)
        DatumWriter(schema).write(datum, BinaryEncoder(output))
    except (AvroException, OverflowError, TypeError, AttributeError) as error:
        raise ValueError(str(error)) from None
    return output.getvalue()


def to_datum(schema: "AvroSchema", value: Any, path: str, depth: int) -> Any:
    """Return what Apache's library writes for a JSON value.

    Raises:
        ValueError: it does not fit.
    """
    if depth > DEPTH_MAX:
        raise ValueError(f"{path}: nested too deeply")
    told: Any = schema
    kind = told.type
    logical = getattr(told, "logical_type", None)
    match kind:
        case "record" | "error":
            return _record(told, value, path, depth)
        case "union":
            return _union(told, value, path, depth)
        case "array":
            _expect(isinstance(value, list), path, "a list", value)
            return [
                to_datum(told.items, each, f"{path}[{index}]", depth + 1)
                for index, each in enumerate(value)
            ]
        case "map":
            _expect(isinstance(value, dict), path, "an object", value)
            return {
                name: to_datum(told.values, each, f"{path}.{name}", depth + 1)
                for name, each in value.items()
            }
        case "enum":
            _expect(value in told.symbols, path, f"one of {', '.join(told.symbols)}", value)
            return value
    if logical is not None and isinstance(value, str):
        return _logical(logical, value, path)
    return _primitive(told, kind, value, path)


def _record(schema: Any, value: Any, path: str, depth: int) -> dict[str, Any]:
    _expect(isinstance(value, dict), path, f"an object ({schema.name})", value)
    found = {}
    for field in schema.fields:
        at = f"{path}.{field.name}"
        if field.name in value:
            found[field.name] = to_datum(field.type, value[field.name], at, depth + 1)
        elif field.has_default:
            found[field.name] = to_datum(field.type, field.default, at, depth + 1)
        else:
            raise ValueError(f"{at} is missing, and has no default")
    unknown = sorted(value.keys() - found.keys())
    if unknown:
        raise ValueError(f"{path}: {schema.name} has no field {', '.join(unknown)}")
    return found


def _union(schema: Any, value: Any, path: str, depth: int) -> Any:
    branches = schema.schemas
    if isinstance(value, dict) and len(value) == 1:
        ((name, inner),) = value.items()
        for branch in branches:
            if name in (branch.type, getattr(branch, "fullname", None)):
                try:
                    return to_datum(branch, inner, path, depth + 1)
                except ValueError:
                    break
    refusals = []
    for branch in branches:
        try:
            return to_datum(branch, value, path, depth + 1)
        except ValueError as error:
            refusals.append(str(error))
    if len(refusals) == 2 and branches[0].type == "null" and value is not None:
        raise ValueError(refusals[1])
    names = ", ".join(getattr(each, "fullname", each.type) for each in branches)
    raise ValueError(f"{path}: {_shown(value)} is none of {names}")


def _logical(logical: str, text: str, path: str) -> Any:
    try:
        if logical == "decimal":
            return Decimal(text)
        read = _TEXT.get(logical)
        return text if read is None else read(text)
    except (ValueError, InvalidOperation):
        raise ValueError(f"{path}: {text!r} is no {logical}") from None


def _primitive(schema: Any, kind: str, value: Any, path: str) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match kind:
        case "null":
            _expect(value is None, path, "null", value)
        case "boolean":
            _expect(isinstance(value, bool), path, "true or false", value)
        case "int" | "long":
            _expect(is_number and isinstance(value, int), path, "a whole number", value)
            bound = 2 ** INTEGER_BITS[kind]
            _expect(-bound <= value < bound, path, f"within the range of {kind}", value)
        case "float" | "double":
            if value in ("nan", "inf", "-inf"):
                return float(value)
            _expect(is_number, path, "a number", value)
            return float(value)
        case "string":
            _expect(isinstance(value, str), path, "text", value)
        case "bytes" | "fixed":
            if getattr(schema, "logical_type", None) == "decimal" and is_number:
                return Decimal(str(value))
            _expect(isinstance(value, str), path, "text, one character a byte", value)
            try:
                data = value.encode("latin-1")
            except UnicodeEncodeError:
                raise ValueError(f"{path}: a character is no byte (up to U+00FF)") from None
            if kind == "fixed":
                _expect(len(data) == schema.size, path, f"of {schema.size} bytes", value)
            return data
    return value


def _moment(text: str) -> dt.datetime:
    moment = dt.datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)


def _expect(fits: bool, path: str, what: str, value: Any) -> None:
    if not fits:
        raise ValueError(f"{path}: {_shown(value)} is not {what}")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
