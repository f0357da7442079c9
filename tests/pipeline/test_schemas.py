"""Types of columns by a JSON Schema, without a Spark."""

import pytest

from kafkalite.pipeline.schemas import spark_type


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ({"type": "string"}, "STRING"),
        ({"type": "integer"}, "BIGINT"),
        ({"type": ["null", "number"]}, "DOUBLE"),
        ({"type": ["string", "number"]}, "STRING"),
        ({"type": "array", "items": {"type": "boolean"}}, "ARRAY<BOOLEAN>"),
        ({"type": "array", "items": [{}]}, "STRING"),
        ({"type": "object"}, "STRING"),
        (
            {"type": "object", "properties": {"a`b": {"$ref": "#/$defs/x"}}},
            "STRUCT<`a``b`: BIGINT>",
        ),
        (True, "STRING"),
        ({"oneOf": [{}]}, "STRING"),
    ],
)
def test_types_are_those_of_the_schema(said, kind):
    assert spark_type(said, {"$defs": {"x": {"type": "integer"}}}) == kind
