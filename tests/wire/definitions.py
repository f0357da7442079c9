"""Apache's definitions of messages in a short form: a line for each field, below its structure."""


def parse_definitions(text):
    """Return definitions by name, as Apache's JSON has them.

    A line that is not indented is a message: name, key, versions, flexible versions. The others
    are fields: name, type, versions, and what else the JSON says.
    """
    definitions = {}
    fields_at = {}
    for line in text.splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        name, kind, versions, *more = line.split()
        if depth == 0:
            fields_at[1] = []
            definitions[name] = {
                "apiKey": int(kind),
                "validVersions": versions,
                "flexibleVersions": more[0],
                "fields": fields_at[1],
            }
            continue
        said = dict(word.split("=") for word in more)
        field = {"name": name, "type": kind, "versions": versions, **said, "fields": []}
        fields_at[depth].append(field)
        fields_at[depth + 1] = field["fields"]
    return definitions
