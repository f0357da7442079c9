"""Confluent's serializers for Python; see `test_schema_registry`."""

import json
import sys

from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

AVRO = '{"type":"record","name":"Order","fields":[{"name":"id","type":"int"}]}'
JSON = '{"title":"Order","type":"object","properties":{"id":{"type":"integer"}}}'
WAYS = (
    {},
    {"normalize.schemas": True},
    {"auto.register.schemas": False, "use.latest.version": True},
    {"auto.register.schemas": False},
)


def order_class():
    file = descriptor_pb2.FileDescriptorProto(name="order.proto", syntax="proto3")
    field = file.message_type.add(name="Order").field.add(name="id", number=1)
    field.type, field.label = field.TYPE_INT32, field.LABEL_OPTIONAL
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("Order"))


def main():
    client = SchemaRegistryClient({"url": sys.argv[1]})
    order = order_class()
    deprecated = {"use.deprecated.format": False}
    deserializers = {
        "avro": AvroDeserializer(client),
        "json": JSONDeserializer(None, schema_registry_client=client),
        "protobuf": ProtobufDeserializer(order, deprecated, client),
    }
    written = {}
    for way in WAYS:
        serializers = {
            "avro": AvroSerializer(client, AVRO, conf=way),
            "json": JSONSerializer(JSON, client, conf=way),
            "protobuf": ProtobufSerializer(order, client, {**deprecated, **way}),
        }
        for kind, serializer in serializers.items():
            context = SerializationContext(f"python-{kind}", MessageField.VALUE)
            data = serializer(order(id=7) if kind == "protobuf" else {"id": 7}, context)
            assert written.setdefault(kind, data) == data, (kind, way)
    inner = Schema('{"type":"record","name":"Inner","fields":[{"name":"a","type":"int"}]}', "AVRO")
    client.register_schema("python-inner", inner)
    outer = Schema(
        '{"type":"record","name":"Outer","fields":[{"name":"inner","type":"Inner"}]}',
        "AVRO",
        [SchemaReference("Inner", "python-inner", 1)],
    )
    context = SerializationContext("python-reference", MessageField.VALUE)
    data = AvroSerializer(client, outer)({"inner": {"a": 1}}, context)
    assert AvroDeserializer(client)(data, context) == {"inner": {"a": 1}}
    try:
        client.register_schema("python-avro-value", Schema(AVRO.replace("int", "string"), "AVRO"))
    except SchemaRegistryError as error:
        refused = error.http_status_code
    read = {}
    for kind, text in json.loads(sys.argv[2]).items():
        context = SerializationContext(f"shared-{kind}", MessageField.VALUE)
        value = deserializers[kind](bytes.fromhex(text), context)
        read[kind] = {"id": value.id} if kind == "protobuf" else value
    hexadecimal = {kind: data.hex() for kind, data in written.items()}
    print(json.dumps({"written": hexadecimal, "read": read, "refused": refused}))


main()
