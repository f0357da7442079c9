"""A shard that keeps text under names: all that the runtime's tests need of a coordinator."""

import trio

from kafkalite.coordinator.shard import NOTHING, Result, StoredRecord, Timers
from kafkalite.wire.errors import ErrorCode, KafkaError
from tests.coordinator.fakes import WALL_OFFSET_MS
from tests.coordinator.test_records import TextCodec

TOPIC = "__toy"


class TrioClock:
    """Trio's own time, so that MockClock moves everything."""

    def monotonic_ms(self):
        return round(trio.current_time() * 1000)

    def real_monotonic_ms(self):
        return self.monotonic_ms()

    def wall_ms(self):
        return WALL_OFFSET_MS + self.monotonic_ms()


class ToyShard:
    """Events are tuples, the first part saying what to do."""

    def __init__(self):
        self.values = {}
        self.pending = {}
        self.parked = {}
        self.timers = Timers()
        self.loaded = False
        self.refused_next = False
        self.told = []

    def handle(self, event, ticket, now):
        kind, *rest = event
        return getattr(self, f"do_{kind}")(ticket, now, *rest)

    def do_set(self, ticket, now, name, value, producer_id=-1):
        record = StoredRecord(name, value)
        return Result([record], [(ticket, f"set {name}")], producer_id=producer_id)

    def do_fill(self, ticket, now, count, atomic):
        records = [StoredRecord(f"n{i}", "x" * 100) for i in range(count)]
        return Result(records, [(ticket, "filled")], atomic=atomic)

    def do_get(self, ticket, now, name):
        return Result(replies=[(ticket, self.values.get(name))])

    def do_ping(self, ticket, now):
        return Result(replies=[(ticket, "pong")], at_once=True)

    def do_refuse(self, ticket, now):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "no")

    def do_refuse_later(self, ticket, now):
        return Result(replies=[(ticket, KafkaError(ErrorCode.INVALID_REQUEST, "no"))])

    def do_park(self, ticket, now, name, for_ms=None):
        self.parked[name] = ticket
        if for_ms is not None:
            self.timers.schedule(name, now.monotonic_ms + for_ms)
        return NOTHING

    def do_park_writing(self, ticket, now, name):
        self.parked[name] = ticket
        return Result([StoredRecord(name, "parked")])

    def do_release(self, ticket, now, name):
        return Result(replies=[(self.parked.pop(name), f"released {name}"), (ticket, "done")])

    def do_effect(self, ticket, now, name, what, records=True):
        stored = [StoredRecord(name, "done")] if records else []
        return Result(stored, [(ticket, "done")], effects=[what])

    def do_gone(self, ticket, now, what):
        self.told.append(what)
        return Result([StoredRecord("gone", str(what))], [(ticket, None)])

    def do_notice(self, ticket, now, what):
        self.told.append(what)
        return Result(replies=[(ticket, None)])

    def do_silence(self, ticket, now, what):
        self.told.append(what)
        return NOTHING

    def on_loaded(self, now):
        self.loaded = True
        return NOTHING

    def on_time(self, now):
        name = self.timers.pop_due(now.monotonic_ms)
        if name is None:
            return NOTHING
        return Result([StoredRecord(name, "late")], [(self.parked.pop(name), f"{name} is late")])

    def next_deadline_ms(self):
        return self.timers.next_deadline_ms()

    def replay(self, record):
        target = self.values if record.producer_id == -1 else self.pending
        target[record.key] = (record.value, record.offset)

    def replay_marker(self, producer_id, *, committed):
        if committed:
            self.values |= self.pending
        self.pending.clear()


class ToyKind:
    topic = TOPIC

    def __init__(self, told="gone"):
        self.codec = TextCodec()
        self.told = told

    def new_shard(self, partition):
        return ToyShard()

    def event_for_disconnect(self, connection_id):
        return (self.told, connection_id) if self.told else None

    def event_for_changed_topics(self, topics):
        return ("notice", f"changed {','.join(topics)}") if self.told else None

    def event_for_deleted_topics(self, topics):
        return (self.told, ",".join(topics)) if self.told else None
