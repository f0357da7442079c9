"""Columns that are made of what was written with a schema, typed as the schema says.

Avro and JSON are decoded by Spark itself, Protobuf by Google's library in its Python workers. All
records of a run have the columns of the latest schema; those that were written with another one are
read by Avro's rules of resolution, by Protobuf's field numbers, by JSON's names.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from kafkalite.pipeline import protobuf_rows
from kafkalite.pipeline.errors import PipelineError
from kafkalite.registry import schemas
from kafkalite.registry.client import SchemaRegistryClient, SchemaRegistryError
from kafkalite.registry.errors import RegistryError
from kafkalite.registry.model import SchemaType
from kafkalite.registry.values import ResolvedSchema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

PARTS: Final = ("key", "value")
UNKNOWN: Final = "kafkalite: the schema is not known: "
DEPTH_MAX: Final = 16
JSON_TYPES: Final = {
    "string": "STRING",
    "integer": "BIGINT",
    "number": "DOUBLE",
    "boolean": "BOOLEAN",
}


@dataclass(slots=True)
class PartSchemas:
    """Schemas of keys or of values.

    Attributes:
        reader: the latest; its types are those of the columns.
        known: all that records may be written with, by id.
        unreadable: why `reader` does not read what was written with these, by id.
    """

    part: str
    reader: ResolvedSchema
    known: dict[int, ResolvedSchema]
    unreadable: dict[int, str] = field(default_factory=dict)

    @property
    def schema_type(self) -> SchemaType:
        """Language of the latest."""
        return self.reader.schema.schema_type


class TopicSchemas:
    """Schemas of one topic, as far as they are known; more are learnt as records name them.

    Args:
        url: of the registry.
        topic: whose subjects are TOPIC-key and TOPIC-value.

    Raises:
        PipelineError: the registry does not answer, or has none for the topic.
    """

    def __init__(self, url: str, topic: str) -> None:
        self._topic = topic
        self._more: dict[str, set[int]] = {part: set() for part in PARTS}
        try:
            self._client = SchemaRegistryClient(url)
        except ValueError as error:
            raise PipelineError(str(error)) from None
        self.parts = self._parts()

    def _parts(self) -> list[PartSchemas]:
        try:
            parts = [found for part in PARTS if (found := self._part(part)) is not None]
        except (SchemaRegistryError, RegistryError) as error:
            raise PipelineError(str(error)) from error
        if not parts:
            raise PipelineError(
                f"schema registry {self._client.url} has neither {self._topic}-key nor "
                f"{self._topic}-value"
            )
        return parts

    def _part(self, part: str) -> PartSchemas | None:
        try:
            known = self._client.versions(f"{self._topic}-{part}")
        except SchemaRegistryError as error:
            if error.code // 100 != 404:
                raise
            return None
        reader = [*known.values()][-1]
        unreadable = {}
        for schema_id in self._more[part] - known.keys():
            try:
                known[schema_id] = self._client.schema(schema_id)
            except SchemaRegistryError as error:
                if error.code == 0:
                    raise
                unreadable[schema_id] = f"schema {schema_id} is not in the registry"
        for schema_id, writer in known.items():
            found = schemas.incompatibilities(
                reader.schema, reader.references, writer.schema, writer.references
            )
            if found and writer is not reader:
                unreadable[schema_id] = f"schema {schema_id} does not fit the latest: {found[0]}"
        return PartSchemas(part, reader, known, unreadable)

    def learn(self, error: Exception) -> bool:
        """Take up what a run failed for; return whether it was a schema that was not known."""
        found = re.search(rf"{re.escape(UNKNOWN)}(key|value) (\d+)", str(error))
        if found is None:
            return False
        self._more[found[1]].add(int(found[2]))
        self.parts = self._parts()
        return True

    def decoded(self, rows: "DataFrame") -> "DataFrame":
        """Return rows of an archive with three more columns for keys and for values with schemas.

        These are `value_schema_id`, `value_data` (null where it cannot be read) and
        `value_problem`, why it cannot; the same with `key_`.
        """
        for each in self.parts:
            rows = _with_part(rows, each)
        return rows


def _with_part(rows: "DataFrame", part: PartSchemas) -> "DataFrame":
    from pyspark.sql import functions as F

    name, content = part.part, F.col(part.part)
    has_schema = (F.length(content) >= 5) & (F.substring(content, 1, 1) == F.lit(b"\0"))
    schema_id = F.when(has_schema, F.conv(F.hex(F.substring(content, 2, 4)), 16, 10).cast("int"))
    rows = rows.withColumn(f"{name}_schema_id", schema_id)
    given, payload = F.col(f"{name}_schema_id"), F.expr(f"substring({name}, 6)")
    readable = [each for each in part.known if each not in part.unreadable]
    known_ids = [*part.known, *part.unreadable]
    unknown = given.isNotNull() & ~given.isin(known_ids)
    failure = F.raise_error(F.concat(F.lit(f"{UNKNOWN}{name} "), given.cast("string")))
    data = _data(part, readable, given, payload)
    rows = rows.withColumn(f"{name}_data", F.when(unknown, failure).otherwise(data))
    problem = F.when(content.isNull(), F.lit(None).cast("string"))
    problem = problem.when(given.isNull(), F.lit("no schema"))
    for schema_id_, why in part.unreadable.items():
        problem = problem.when(given == schema_id_, F.lit(why))
    nothing = F.to_json(F.struct(F.col(f"{name}_data").alias("it"))).isin("{}", '{"it":{}}')
    # A message of Protobuf with nothing in it is one; of the others nothing was read.
    is_bad = nothing if part.schema_type is not SchemaType.PROTOBUF else F.col(
        f"{name}_data"
    ).isNull()  # fmt: skip
    not_of = F.concat(F.lit("not of schema "), given.cast("string"))
    return rows.withColumn(f"{name}_problem", problem.when(is_bad, not_of))


def _data(part: PartSchemas, readable: list[int], given: "Column", payload: "Column") -> "Column":
    from pyspark.sql import functions as F

    reader = part.reader
    match part.schema_type:
        case SchemaType.AVRO:
            from pyspark.sql.avro.functions import from_avro

            options = {"mode": "PERMISSIVE", "avroSchema": _avro_text(reader)}
            data = F.when(given.isNull(), None)
            for each in readable:
                writer = _avro_text(part.known[each])
                data = data.when(given == each, from_avro(payload, writer, options))
            return data
        case SchemaType.PROTOBUF:
            texts = schemas.texts_of(reader.references)
            kind = protobuf_rows.row_type(reader.schema.text, texts)
            read = F.udf(protobuf_rows.reader(reader.schema.text, texts), kind)
            data = read(F.when(given.isin(readable), payload))
        case SchemaType.JSON:
            said = json.loads(reader.schema.text)
            data = F.from_json(payload.cast("string"), spark_type(said, said))
    return F.when(given.isin(readable), data)


def _avro_text(known: ResolvedSchema) -> str:
    return schemas.formatted(known.schema, known.references, "resolved")


def spark_type(said: Any, root: Any, depth: int = 0) -> str:
    """Return the type, as Spark writes it, of values of a JSON Schema; STRING (the JSON) for any.

    Types that may also be null are what they else are.
    """
    said = _resolved(said, root)
    kind = said.get("type") if isinstance(said, Mapping) else None
    if isinstance(kind, list):
        others = [each for each in kind if each != "null"]
        kind = others[0] if len(others) == 1 else None
    if depth > DEPTH_MAX or not isinstance(kind, str):
        return "STRING"
    if kind == "object":
        fields = [
            f"`{name.replace('`', '``')}`: {spark_type(each, root, depth + 1)}"
            for name, each in said.get("properties", {}).items()
        ]
        return f"STRUCT<{', '.join(fields)}>" if fields else "STRING"
    if kind == "array":
        items = said.get("items", {})
        return (
            f"ARRAY<{spark_type(items, root, depth + 1)}>" if isinstance(items, dict) else "STRING"
        )
    return JSON_TYPES.get(kind, "STRING")


def _resolved(said: Any, root: Any) -> Any:
    reference = said.get("$ref") if isinstance(said, Mapping) else None
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return said
    found = root
    for part in reference[2:].split("/"):
        found = found.get(part.replace("~1", "/").replace("~0", "~"), {})
    return found


def check_types(old: "StructType", new: "StructType") -> None:
    """Refuse columns that an archive has already with another type.

    Raises:
        PipelineError: it names the first of them.
    """
    before = dict(_leaves("", old))
    for name, kind in _leaves("", new):
        if name in before and before[name] != kind and name.startswith(("key_", "value_")):
            raise PipelineError(
                f"the archive has {name} as {before[name]}, and by the latest schema it is {kind}: "
                "archive into another folder, or register a schema that fits"
            )


def _leaves(prefix: str, kind: Any) -> Iterator[tuple[str, str]]:
    for each in kind.fields:
        name = f"{prefix}{each.name}"
        if each.dataType.typeName() == "struct":
            yield name, "STRUCT"
            yield from _leaves(f"{name}.", each.dataType)
        else:
            yield name, each.dataType.simpleString().upper()


def archived_columns(spark: "SparkSession", path: str) -> "DataFrame | None":
    """Return what was archived with all columns that any file has; None if nothing was."""
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as F

    try:
        rows = spark.read.option("mergeSchema", "true").parquet(path)
    except AnalysisException as error:
        if "PATH_NOT_FOUND" in str(error) or "infer schema" in str(error):
            return None  # no folder, or one without files yet
        raise
    return rows.withColumn("partition", F.col("partition").cast("int"))
