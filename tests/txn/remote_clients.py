"""A producer that finds its way in a `Cluster`: it goes to leaders, and tries again."""

import trio

from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode
from tests.txn.clients import VERSIONS, Producer, Refused
from tests.txn.cluster_kit import GROUP, RETRIABLE, SHARD
from tests.txn.inprocess import HANDLERS

PATIENCE_S = 60
COORDINATED = {
    "INIT_PRODUCER_ID": SHARD,
    "ADD_PARTITIONS_TO_TXN": SHARD,
    "ADD_OFFSETS_TO_TXN": SHARD,
    "END_TXN": SHARD,
    "TXN_OFFSET_COMMIT": GROUP,
}


class _Asked(Exception):
    def __init__(self, name, request):
        super().__init__(name)
        self.question = name, request


class _Script:
    """Stands for the broker of a synchronous `Producer`: keeps its question, gives the answer."""

    def __init__(self):
        self.answer = None

    def ask(self, name, version, request):
        del version
        if self.answer is None:
            raise _Asked(name, request)
        answer, self.answer = self.answer, None
        return answer

    def settle(self):
        pass


class RemoteProducer:
    """`Producer`'s requests, sent to whoever leads; `codes` has every refusal that it heard."""

    def __init__(self, cluster, transactional_id="tx", generation="java 4.3", **options):
        self.cluster = cluster
        self.script = _Script()
        self.own = Producer(self.script, transactional_id, generation, **options)
        self.codes = []

    async def once(self, method, *args, place=None, **options):
        """Ask once; return what the method of `Producer` makes of the answer."""
        try:
            method(*args, **options)
        except _Asked as asked:
            name, request = asked.question
        node = self.cluster.node_of(place or COORDINATED[name])
        if node is None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        version = VERSIONS[name][self.own.generation]
        api = HANDLERS[name].api
        data = bytearray(b"".join(api.encode_request(version, request)))
        sent = api.decode_request(version, memoryview(data))
        self.script.answer = await node.serve(name, version, sent)
        try:
            return method(*args, **options)
        finally:
            self.script.answer = None

    async def until_done(self, method, *args, **options):
        with trio.fail_after(PATIENCE_S):
            while True:
                answer = await self.once(method, *args, **options)
                code = answer[0] if isinstance(answer, tuple) else answer
                if isinstance(code, dict):
                    (code,) = set(code.values())
                if code is ErrorCode.NONE:
                    return answer
                self.codes.append(code)
                if code not in RETRIABLE:
                    raise Refused(code)
                await trio.sleep(0.02)

    async def init(self):
        await self.until_done(self.own.init_once)
        return self

    async def add(self, topic, index):
        if not self.own.is_second and (topic, index) not in self.own.added:
            await self.until_done(self.own.add, topic, index)

    async def send(self, topic, index, value):
        """Write, and write again what was lost before all replicas had it (acks=all)."""
        await self.add(topic, index)
        place = TopicPartition(topic, index)
        sequence = self.own.sequences.get((topic, index), 0)
        while True:
            self.own.sequences[topic, index] = sequence
            _, offset = await self.until_done(self.own.write, topic, index, value, place=place)
            partition = self.cluster.partitions[place]
            while not partition.is_deposed and partition.high_watermark <= offset:  # noqa: ASYNC110
                await trio.sleep(0.001)
            if partition.high_watermark > offset:
                return

    async def commit_offsets(self, offset, group="g"):
        if not self.own.is_second:
            await self.until_done(self.own.add_offsets, group)
        await self.until_done(self.own.write_offsets, group, {("in", 0): offset})

    async def end(self, *, commit=True):
        await self.until_done(self.own.end_once, commit=commit)

    async def transaction(self, number, *, commit=True):
        """One transaction on three partitions and a group."""
        for index in range(3):
            await self.send("out", index, f"{number}-{index}")
        await self.commit_offsets(number)
        await self.end(commit=commit)
