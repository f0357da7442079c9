package io.github.kafkalite.junit;

import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;

/** The HTTP port of a broker. */
final class ControlPort {

    private static final HttpClient CLIENT =
            HttpClient.newBuilder()
                    .version(HttpClient.Version.HTTP_1_1)
                    .connectTimeout(Duration.ofSeconds(10))
                    .build();

    private final URI address;
    private final String token;

    ControlPort(URI http) {
        String query = http.getRawQuery();
        token = query != null && query.startsWith("token=") ? query.substring(6) : null;
        address = URI.create(http.getScheme() + "://" + http.getRawAuthority());
    }

    URI address() {
        return token == null ? address : URI.create(address + "/?token=" + token);
    }

    static String encode(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20");
    }

    Map<String, Object> get(String path) {
        return checked(path, send("GET", path, null));
    }

    Map<String, Object> delete(String path) {
        return checked(path, send("DELETE", path, null));
    }

    Map<String, Object> post(String path, Map<String, ?> body) {
        return checked(path, send("POST", path, Json.write(body)));
    }

    /** Committed offsets by partition; none of a group that is not there. */
    Map<String, Long> committed(String group, String topic) {
        String path = "/api/v1/groups/" + encode(group);
        HttpResponse<String> answer = send("GET", path, null);
        Map<String, Long> found = new HashMap<>();
        if (answer.statusCode() == 404) {
            return found;
        }
        for (Object each : Json.list(checked(path, answer).get("offsets"))) {
            Map<String, Object> said = Json.object(each);
            if (topic.equals(said.get("topic")) && said.get("committed") != null) {
                found.put(String.valueOf(said.get("partition")), Json.number(said.get("committed")));
            }
        }
        return found;
    }

    private HttpResponse<String> send(String method, String path, String body) {
        HttpRequest.Builder request =
                HttpRequest.newBuilder(address.resolve(path))
                        .timeout(Duration.ofMinutes(11))
                        .header("Content-Type", "application/json")
                        .method(method, body == null ? BodyPublishers.noBody() : BodyPublishers.ofString(body));
        if (token != null) {
            request.header("Authorization", "Bearer " + token);
        }
        try {
            return CLIENT.send(request.build(), BodyHandlers.ofString());
        } catch (IOException error) {
            throw new KafkaliteException("the broker's HTTP port at " + address + " does not answer", error);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new KafkaliteException("interrupted", interrupted);
        }
    }

    private static Map<String, Object> checked(String path, HttpResponse<String> answer) {
        Map<String, Object> said = Json.object(Json.parse(answer.body()));
        if (answer.statusCode() / 100 == 2) {
            return said;
        }
        Object why = said.get("error") instanceof Map<?, ?> error ? error.get("message") : said.get("reason");
        throw new KafkaliteException(path + ": " + why);
    }
}
