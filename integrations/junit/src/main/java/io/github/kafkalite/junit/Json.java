package io.github.kafkalite.junit;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** As much JSON as the broker's answers need, so that no library comes with the extension. */
final class Json {

    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    /** Returns maps, lists, texts, longs, doubles, booleans and null. */
    static Object parse(String text) {
        Json json = new Json(text);
        Object value = json.value();
        json.blanks();
        if (json.at != text.length()) {
            throw json.wrong();
        }
        return value;
    }

    static String write(Object value) {
        if (value instanceof Map<?, ?> map) {
            List<String> parts = new ArrayList<>();
            map.forEach((key, each) -> parts.add(quoted(key.toString()) + ":" + write(each)));
            return "{" + String.join(",", parts) + "}";
        }
        if (value instanceof Iterable<?> list) {
            List<String> parts = new ArrayList<>();
            list.forEach(each -> parts.add(write(each)));
            return "[" + String.join(",", parts) + "]";
        }
        return value instanceof CharSequence text ? quoted(text.toString()) : String.valueOf(value);
    }

    @SuppressWarnings("unchecked")
    static Map<String, Object> object(Object value) {
        return (Map<String, Object>) value;
    }

    static List<?> list(Object value) {
        return (List<?>) value;
    }

    static long number(Object value) {
        return ((Number) value).longValue();
    }

    private static String quoted(String text) {
        StringBuilder quoted = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c == '"' || c == '\\') {
                quoted.append('\\').append(c);
            } else if (c < ' ') {
                quoted.append(String.format("\\u%04x", (int) c));
            } else {
                quoted.append(c);
            }
        }
        return quoted.append('"').toString();
    }

    private Object value() {
        blanks();
        char first = peek();
        if (first == '{') {
            return object();
        } else if (first == '[') {
            return list();
        } else if (first == '"') {
            return text();
        }
        int start = at;
        while (at < text.length() && ",]} \t\r\n".indexOf(text.charAt(at)) < 0) {
            at++;
        }
        String word = text.substring(start, at);
        switch (word) {
            case "true":
                return true;
            case "false":
                return false;
            case "null":
                return null;
            default:
                boolean whole = word.chars().allMatch(c -> c == '-' || Character.isDigit(c));
                return whole ? (Object) Long.valueOf(word) : (Object) Double.valueOf(word);
        }
    }

    private Map<String, Object> object() {
        Map<String, Object> found = new LinkedHashMap<>();
        at++;
        while (!ends('}', found.isEmpty())) {
            blanks();
            String name = text();
            blanks();
            take(':');
            found.put(name, value());
        }
        return found;
    }

    private List<Object> list() {
        List<Object> found = new ArrayList<>();
        at++;
        while (!ends(']', found.isEmpty())) {
            found.add(value());
        }
        return found;
    }

    private String text() {
        StringBuilder found = new StringBuilder();
        take('"');
        while (peek() != '"') {
            char c = text.charAt(at++);
            if (c != '\\') {
                found.append(c);
                continue;
            }
            char escaped = text.charAt(at++);
            int short_ = "bfnrt".indexOf(escaped);
            if (escaped == 'u') {
                found.append((char) Integer.parseInt(text.substring(at, at + 4), 16));
                at += 4;
            } else {
                found.append(short_ < 0 ? escaped : "\b\f\n\r\t".charAt(short_));
            }
        }
        at++;
        return found.toString();
    }

    /** Goes past a comma, or past the end of a list or an object. */
    private boolean ends(char end, boolean isEmpty) {
        blanks();
        if (peek() == end) {
            at++;
            return true;
        }
        if (!isEmpty) {
            take(',');
        }
        return false;
    }

    private void take(char expected) {
        if (peek() != expected) {
            throw wrong();
        }
        at++;
    }

    private void blanks() {
        while (at < text.length() && Character.isWhitespace(text.charAt(at))) {
            at++;
        }
    }

    private char peek() {
        if (at >= text.length()) {
            throw wrong();
        }
        return text.charAt(at);
    }

    private KafkaliteException wrong() {
        return new KafkaliteException("no JSON at character " + at + ": " + text);
    }
}
