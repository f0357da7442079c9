// @kafkajs/confluent-schema-registry; see test_schema_registry.py.
const { SchemaRegistry, SchemaType } = require("@kafkajs/confluent-schema-registry");

const SCHEMAS = {
  avro: { type: SchemaType.AVRO, schema: '{"type":"record","name":"Order","namespace":"n","fields":[{"name":"id","type":"int"}]}' },
  json: { type: SchemaType.JSON, schema: '{"title":"Order","type":"object","properties":{"id":{"type":"integer"}}}' },
  protobuf: { type: SchemaType.PROTOBUF, schema: 'syntax = "proto3"; message Order { int32 id = 1; }' },
};

async function main() {
  const registry = new SchemaRegistry({ host: process.argv[2] });
  const written = {}, read = {};
  for (const [kind, schema] of Object.entries(SCHEMAS)) {
    const { id } = await registry.register(schema, { subject: `node-${kind}-value` });
    if (id !== (await registry.getLatestSchemaId(`node-${kind}-value`))) throw new Error(`${kind}: two ids`);
    written[kind] = (await registry.encode(id, { id: 7 })).toString("hex");
  }
  let refused = 0;
  try {
    const schema = SCHEMAS.avro.schema.replace('"int"', '"string"');
    await registry.register({ type: SchemaType.AVRO, schema }, { subject: "node-avro-value" });
  } catch (error) {
    refused = error.status || String(error);
  }
  for (const [kind, text] of Object.entries(JSON.parse(process.argv[3]))) read[kind] = { id: (await registry.decode(Buffer.from(text, "hex"))).id };
  console.log(JSON.stringify({ written, read, refused }));
}

main().catch((error) => { console.error(error); process.exit(1); });
