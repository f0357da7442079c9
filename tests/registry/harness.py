"""A registry shard with the log that it writes, replayed into a second one after every event."""

from kafkalite.coordinator.shard import Now
from kafkalite.registry.codec import RegistryCodec
from kafkalite.registry.errors import RegistryError
from kafkalite.registry.model import Reference, Schema, SchemaType
from kafkalite.registry.shard import Register, RegistryShard

NOW = Now(0, 0)


def avro(text, *references):
    return Schema(SchemaType.AVRO, text, tuple(Reference(*each) for each in references))


def json_schema(text):
    return Schema(SchemaType.JSON, text)


def record(*fields, name="R"):
    """Return the text of an Avro record; a field is its JSON, or its name for a string."""
    told = [f if f.startswith("{") else f'{{"name":"{f}","type":"string"}}' for f in fields]
    return f'{{"type":"record","name":"{name}","fields":[{",".join(told)}]}}'


OPTIONAL_B = '{"name":"b","type":["null","string"],"default":null}'


class Registry:
    def __init__(self):
        self.shard = RegistryShard()
        self.log = []
        self._ticket = 0

    def ask(self, event):
        """Return the answer; raise it if it is a refusal."""
        self._ticket += 1
        result = self.shard.handle(event, self._ticket, NOW)
        codec = RegistryCodec()
        for written in result.records:
            key, value = codec.encode(written)
            self.log.append((key, value))
            self.shard.replay(codec.decode(key, value))
        again = RegistryShard()
        for key, value in self.log:
            again.replay(codec.decode(key, value))
        assert again.state == self.shard.state
        ((ticket, answer),) = result.replies
        assert ticket == self._ticket
        if isinstance(answer, RegistryError):
            assert not result.records
            raise answer
        return answer

    def register(self, subject, schema, **said):
        schema = schema if isinstance(schema, Schema) else avro(schema)
        answer = self.ask(Register(subject=subject, schema=schema, **said))
        return answer["id"], answer["version"]
