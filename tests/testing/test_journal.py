"""The journal alone: fed with exchanges as the dispatcher would."""

from types import SimpleNamespace
from uuid import UUID

import trio

from benchmarks.process import frame_of
from kafkalite.api.handler import Handler
from kafkalite.network.in_flight import InFlightRequest
from kafkalite.observe.requests import Requests
from kafkalite.testing import journal as journal_module
from kafkalite.testing.journal import Journal
from kafkalite.types import TopicPartition
from kafkalite.wire.api import ApiKey
from kafkalite.wire.header import RequestHeader
from kafkalite.wire.messages.fetch import (
    FETCH,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
)
from kafkalite.wire.messages.heartbeat import HEARTBEAT, HeartbeatRequest, HeartbeatResponse
from kafkalite.wire.messages.list_offsets import (
    LIST_OFFSETS,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kafkalite.wire.messages.sync_group import SYNC_GROUP, SyncGroupRequest

ORDERS_ID = UUID(int=7)
P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


class Client:
    """Says things over one connection."""

    sent = 0

    def __init__(self, journal, connection_id=1, client_id="c"):
        self.journal = journal
        self.context = SimpleNamespace(
            connection_id=connection_id, client_id=client_id, now_ms=1234
        )

    def send(self, api, request, size_bytes=0, *, answered=True):
        Client.sent += 1
        version = max(3, api.versions[0])
        exchange = InFlightRequest(
            Handler(api=api, handle=None, refuse=None),
            RequestHeader(api.key, version, 1, self.context.client_id),
            request,
            FetchResponse() if api is FETCH else HeartbeatResponse(error_code=27),
        )
        exchange.frame = frame_of(api, version, request)[4:]
        exchange.frame += bytes(max(0, size_bytes - len(exchange.frame)))
        exchange.began_s = float(Client.sent)
        exchange.context, exchange.at_ms = self.context, self.context.now_ms
        self.journal.observe(exchange, size_bytes, self.context)
        if answered:
            self.journal.kept.on_answered(exchange)

    def sync(self, member_id="m"):
        self.send(SYNC_GROUP, SyncGroupRequest(group_id="g", member_id=member_id))

    def list_offsets(self, index):
        partitions = [ListOffsetsPartition(partition_index=index, timestamp=-1)]
        topics = [ListOffsetsTopic(name="orders", partitions=partitions)]
        self.send(LIST_OFFSETS, ListOffsetsRequest(topics=topics))

    def fetch(self, *indexes, epoch=-1, forgotten=(), by_id=False):
        topic = {"topic_id": ORDERS_ID} if by_id else {"topic": "orders"}
        request = FetchRequest(session_epoch=epoch)
        if indexes:
            partitions = [FetchPartition(partition=index) for index in indexes]
            request.topics = [FetchTopic(partitions=partitions, **topic)]
        if forgotten:
            request.forgotten_topics_data = [ForgottenTopic(partitions=list(forgotten), **topic)]
        self.send(FETCH, request)


def new_journal(max_bytes=1_000_000):
    journal = Journal({ORDERS_ID: "orders"}.get)
    journal.kept = Requests(max_bytes=max_bytes, slow_ms=-1)
    journal.attach(journal.kept)
    return journal


class TestRequests:
    def test_are_kept_in_order_and_can_be_picked(self):
        journal = new_journal()
        Client(journal, 1, "a").send(HEARTBEAT, HeartbeatRequest(group_id="1"))
        Client(journal, 2, "b").send(HEARTBEAT, HeartbeatRequest(group_id="2"))
        Client(journal, 2, "b").fetch(0)
        assert [seen.api for seen in journal.find()] == [
            ApiKey.HEARTBEAT,
            ApiKey.HEARTBEAT,
            ApiKey.FETCH,
        ]
        (seen,) = journal.find(api=ApiKey.HEARTBEAT, client_id="b")
        assert seen.message.group_id == "2"
        assert (seen.version, seen.connection_id, seen.timestamp_ms) == (3, 2, 1234)

    def test_those_without_an_answer_are_among_them(self):
        journal = new_journal()
        Client(journal).send(HEARTBEAT, HeartbeatRequest(group_id="1"), answered=False)
        Client(journal).send(HEARTBEAT, HeartbeatRequest(group_id="2"))
        open_one, answered = journal.find()
        assert (open_one.message.group_id, open_one.duration_ms) == ("1", None)
        assert answered.errors == ("REBALANCE_IN_PROGRESS",)
        assert answered.duration_ms is not None

    def test_what_is_remembered_of_them_is_bounded(self, monkeypatch):
        monkeypatch.setattr(journal_module, "OPEN_MAX", 2)
        journal = new_journal()
        for group_id in "123":
            Client(journal).send(HEARTBEAT, HeartbeatRequest(group_id=group_id), answered=False)
        assert [seen.message.group_id for seen in journal.find()] == ["2", "3"]

    def test_oldest_go_when_they_hold_too_much(self):
        journal = new_journal(max_bytes=2_000)
        for group_id in "123":
            Client(journal).send(HEARTBEAT, HeartbeatRequest(group_id=group_id))
        assert [seen.message.group_id for seen in journal.find()] == ["2", "3"]
        journal.clear()
        assert journal.find() == []
        for group_id in "45":
            Client(journal).send(HEARTBEAT, HeartbeatRequest(group_id=group_id))
        assert len(journal.find()) == 2


class TestReading:
    def reads(self, journal, *partitions):
        return journal.reads_since_sync("g", "m", "c", partitions)

    def test_fetch_after_the_assignment_counts(self):
        journal = new_journal()
        client = Client(journal)
        client.fetch(0)
        assert not self.reads(journal, P0)  # in no group yet
        client.sync()
        assert not self.reads(journal, P0)  # may be of a position that it gave up
        client.fetch(0)
        assert self.reads(journal, P0)
        assert not self.reads(journal, P0, P1)

    def test_nothing_assigned_is_nothing_to_read(self):
        journal = new_journal()
        Client(journal).sync()
        assert self.reads(journal)

    def test_partitions_may_be_read_over_several_connections(self):
        journal = new_journal()
        Client(journal, 1).sync()
        Client(journal, 2).fetch(0)
        Client(journal, 3).fetch(1)
        assert self.reads(journal, P0, P1)

    def test_other_clients_do_not_count(self):
        journal = new_journal()
        Client(journal).sync()
        Client(journal, 2, "other").fetch(0)
        assert not self.reads(journal, P0)

    def test_incremental_fetch_goes_on_with_what_was_named_before(self):
        """Rule 85: a session remembers its partitions."""
        journal = new_journal()
        client = Client(journal)
        client.fetch(0, 1, epoch=0, by_id=True)
        client.sync()
        client.fetch(epoch=1)
        assert self.reads(journal, P0, P1)
        client.fetch(epoch=2, forgotten=[1], by_id=True)
        assert self.reads(journal, P0)
        assert not self.reads(journal, P1)

    def test_full_fetch_names_all(self):
        journal = new_journal()
        client = Client(journal)
        client.sync()
        client.fetch(0)
        client.fetch(1)
        assert self.reads(journal, P1)
        assert not self.reads(journal, P0)

    def test_asking_for_an_offset_fixes_the_position(self):
        journal = new_journal()
        client = Client(journal)
        client.list_offsets(0)
        client.sync()
        assert not self.reads(journal, P0)
        client.list_offsets(0)
        client.fetch(1)
        assert self.reads(journal, P0, P1)

    def test_what_is_remembered_is_bounded(self, monkeypatch):
        monkeypatch.setattr(journal_module, "READERS_MAX", 1)
        journal = new_journal()
        Client(journal).sync("old")
        Client(journal).sync()
        Client(journal, 2).fetch(0)
        Client(journal, 3).fetch(1)
        assert self.reads(journal, P1)
        assert not self.reads(journal, P0)
        assert not journal.reads_since_sync("g", "old", "c", [])


def test_waiting_ends_with_the_request_that_makes_it_true():
    journal = new_journal()

    async def main():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(journal.wait_until, lambda: len(journal.find()) == 2)
            await trio.testing.wait_all_tasks_blocked()
            Client(journal).fetch(0)
            await trio.testing.wait_all_tasks_blocked()
            assert nursery.child_tasks
            Client(journal).fetch(0)
        await journal.wait_until(lambda: True)

    trio.run(main)
