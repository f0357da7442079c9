// Flink's serde for Confluent's registry, which has Confluent's own client in it; see
// test_schema_registry.py.
import java.util.HexFormat;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.flink.avro.shaded.org.apache.avro.Schema;
import org.apache.flink.avro.shaded.org.apache.avro.generic.GenericData;
import org.apache.flink.avro.shaded.org.apache.avro.generic.GenericRecord;
import org.apache.flink.formats.avro.registry.confluent.ConfluentRegistryAvroDeserializationSchema;
import org.apache.flink.formats.avro.registry.confluent.ConfluentRegistryAvroSerializationSchema;

public class Program {
    static final String ORDER =
        "{\"type\":\"record\",\"name\":\"Order\",\"fields\":[{\"name\":\"id\",\"type\":\"int\"}]}";

    public static void main(String[] arguments) throws Exception {
        String url = arguments[0];
        Schema schema = new Schema.Parser().parse(ORDER);
        GenericRecord order = new GenericData.Record(schema);
        order.put("id", 7);
        byte[] written = ConfluentRegistryAvroSerializationSchema
            .forGeneric("java-avro-value", schema, url).serialize(order);

        Schema wrong = new Schema.Parser().parse(ORDER.replace("\"int\"", "\"string\""));
        GenericRecord other = new GenericData.Record(wrong);
        other.put("id", "x");
        String refused = "0";
        try {
            ConfluentRegistryAvroSerializationSchema
                .forGeneric("java-avro-value", wrong, url).serialize(other);
        } catch (RuntimeException error) {
            for (Throwable cause = error; cause != null; cause = cause.getCause()) {
                Matcher code = Pattern.compile("error code: (\\d+)").matcher(String.valueOf(cause.getMessage()));
                if (code.find()) {
                    refused = code.group(1);
                }
            }
        }

        Matcher given = Pattern.compile("\"avro\": \"([0-9a-f]+)\"").matcher(arguments[1]);
        given.find();
        GenericRecord read = ConfluentRegistryAvroDeserializationSchema
            .forGeneric(schema, url).deserialize(HexFormat.of().parseHex(given.group(1)));
        System.out.printf("{\"written\": {\"avro\": \"%s\"}, \"read\": {\"avro\": {\"id\": %s}}, \"refused\": %s}%n",
            HexFormat.of().formatHex(written), read.get("id"), refused);
    }
}
