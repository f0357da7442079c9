import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.SimpleAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;
import org.apache.kafka.coordinator.group.streams.assignor.AssignmentMemberSpec;
import org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor;
import org.apache.kafka.coordinator.group.streams.assignor.TopologyDescriber;

/** Gives Apache Kafka's assignors a case in each line of JSON, and prints what they answer. */
public class Assignors {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] words) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        StringBuilder out = new StringBuilder();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode asked = JSON.readTree(line);
            boolean streams = asked.get("assignor").asText().equals("sticky");
            out.append(JSON.writeValueAsString(streams ? tasks(asked) : partitions(asked)));
            out.append('\n');
        }
        System.out.print(out);
    }

    private static ObjectNode partitions(JsonNode asked) throws Exception {
        Map<Uuid, Set<Integer>> assignable = new HashMap<>();
        asked.get("topics").fields().forEachRemaining(each -> {
            Set<Integer> numbers = new HashSet<>();
            for (int number = 0; number < each.getValue().asInt(); number++) numbers.add(number);
            assignable.put(Uuid.fromString(each.getKey()), numbers);
        });
        ObjectNode told = JSON.createObjectNode();
        ObjectNode walked = told.putObject("old");
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new HashMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        for (JsonNode member : asked.get("members")) {
            String id = member.get("id").asText();
            Set<Uuid> topics = new LinkedHashSet<>();
            member.get("topics").forEach(topic -> topics.add(Uuid.fromString(topic.asText())));
            Map<Uuid, Set<Integer>> old = new HashMap<>();
            member.get("old").fields().forEachRemaining(each -> {
                List<Integer> numbers = JSON.convertValue(each.getValue(), List.class);
                old.put(Uuid.fromString(each.getKey()), new HashSet<>(numbers));
            });
            write(walked.putObject(id), old);
            old.forEach((topic, numbers) -> numbers.forEach(number ->
                owners.computeIfAbsent(topic, key -> new HashMap<>()).put(number, id)));
            members.put(id, new MemberSubscriptionAndAssignmentImpl(
                Optional.empty(), Optional.empty(), topics, new Assignment(old)));
        }
        SubscriptionType type = SubscriptionType.valueOf(asked.get("type").asText());
        SubscribedTopicDescriber describer = new SubscribedTopicDescriber() {
            public int numPartitions(Uuid topic) {
                return assignable.containsKey(topic) ? assignable.get(topic).size() : -1;
            }

            public Set<String> racksForPartition(Uuid topic, int number) {
                return Set.of();
            }
        };
        String name = asked.get("assignor").asText();
        GroupSpecImpl group = name.equals("simple")
            ? new GroupSpecImpl(members, type, owners, Optional.of(assignable))
            : new GroupSpecImpl(members, type, owners);
        GroupAssignment found = name.equals("uniform")
            ? new UniformAssignor().assign(group, describer)
            : name.equals("range")
                ? new RangeAssignor().assign(group, describer)
                : new SimpleAssignor().assign(group, describer);
        ObjectNode result = told.putObject("result");
        found.members().forEach((id, given) -> write(result.putObject(id), given.partitions()));
        return told;
    }

    private static void write(ObjectNode node, Map<Uuid, Set<Integer>> partitions) {
        partitions.forEach((topic, numbers) ->
            node.set(topic.toString(), JSON.valueToTree(numbers)));
    }

    private static ObjectNode tasks(JsonNode asked) throws Exception {
        Map<String, AssignmentMemberSpec> members = new HashMap<>();
        for (JsonNode member : asked.get("members")) {
            members.put(member.get("id").asText(), new AssignmentMemberSpec(
                Optional.empty(), Optional.empty(), read(member.get("active")),
                read(member.get("standby")), Map.of(), member.get("process").asText(), Map.of(),
                Map.of(), Map.of()));
        }
        TopologyDescriber topology = new TopologyDescriber() {
            public List<String> subtopologies() {
                TreeSet<String> names = new TreeSet<>();
                asked.get("subtopologies").fieldNames().forEachRemaining(names::add);
                return List.copyOf(names);
            }

            public int maxNumInputPartitions(String name) {
                return asked.get("subtopologies").get(name).asInt();
            }

            public boolean isStateful(String name) {
                return asked.get("stateful").toString().contains('"' + name + '"');
            }
        };
        var found = new StickyTaskAssignor().assign(
            new org.apache.kafka.coordinator.group.streams.assignor.GroupSpecImpl(
                members, Map.of("num.standby.replicas", asked.get("standby").asText())),
            topology);
        ObjectNode told = JSON.createObjectNode();
        ObjectNode result = told.putObject("result");
        found.members().forEach((id, given) -> {
            ObjectNode node = result.putObject(id);
            node.set("active", JSON.valueToTree(given.activeTasks()));
            node.set("standby", JSON.valueToTree(given.standbyTasks()));
        });
        return told;
    }

    private static Map<String, Set<Integer>> read(JsonNode tasks) {
        Map<String, Set<Integer>> found = new HashMap<>();
        tasks.fields().forEachRemaining(each ->
            found.put(each.getKey(), new HashSet<>(JSON.convertValue(each.getValue(), List.class))));
        return found;
    }
}
