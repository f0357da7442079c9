"""Reading assignments, and asking several coordinators; the rest is tested by the commands."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.client import cluster as cluster_module
from kafkalite.client.cluster import Client
from kafkalite.client.groups import list_groups, read_assignment
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import KafkaError
from kafkalite.wire.messages.list_groups import LIST_GROUPS, ListedGroup, ListGroupsResponse
from tests.client.fake_broker import FakeBroker


def assignment(topics, *, version=0, user_data=b""):
    data = struct.pack(">hi", version, len(topics))
    for name, indexes in topics.items():
        encoded = name.encode()
        data += struct.pack(">h", len(encoded)) + encoded
        data += struct.pack(f">i{len(indexes)}i", len(indexes), *indexes)
    return data + struct.pack(">i", len(user_data)) + user_data


class TestReadAssignment:
    @given(
        st.dictionaries(st.text(max_size=9), st.lists(st.integers(0, 2**31 - 1), max_size=9)),
        st.integers(0, 3),
        st.binary(max_size=9),
    )
    def test_partitions_come_out(self, topics, version, user_data):
        data = assignment(topics, version=version, user_data=user_data)
        assert read_assignment(data) == [
            TopicPartition(name, index) for name, indexes in topics.items() for index in indexes
        ]

    @given(st.binary(max_size=40))
    def test_anything_else_is_no_assignment_or_a_harmless_one(self, data):
        assert isinstance(read_assignment(data), list)

    @pytest.mark.parametrize(
        "data",
        [
            b"",
            assignment({"orders": [0, 1]})[:-6],
            struct.pack(">hih", 0, 2**31 - 1, -1),
            struct.pack(">hihi", 0, 1, 0, 2**31 - 1),
            struct.pack(">hihi", 0, 1, 0, -5),
            struct.pack(">hih", 0, 1, 1) + b"\xff" + bytes(4),
        ],
    )
    def test_lies_are_no_assignment(self, data):
        assert read_assignment(data) == []


class TestListGroups:
    def test_all_coordinators_are_asked(self):
        def groups(*names):
            return ListGroupsResponse(groups=[ListedGroup(group_id=name) for name in names])

        first = FakeBroker({LIST_GROUPS: groups("b")}, node_id=1)
        second = FakeBroker({LIST_GROUPS: groups("c", "a")}, node_id=2)
        first.others = [second]
        with first, second, Client(first.bootstrap) as client:
            assert [group.group_id for group in list_groups(client)] == ["a", "b", "c"]

    def test_loading_coordinator_is_waited_for(self, monkeypatch):
        monkeypatch.setattr(cluster_module, "PAUSE_MS", 0)
        answers = [ListGroupsResponse(error_code=14), ListGroupsResponse()]
        with FakeBroker({LIST_GROUPS: answers}) as broker, Client(broker.bootstrap) as client:
            assert list_groups(client) == []
            assert len(broker.seen(LIST_GROUPS)) == 2

    def test_refusal_is_raised(self):
        answer = ListGroupsResponse(error_code=31)
        with (
            FakeBroker({LIST_GROUPS: answer}) as broker,
            Client(broker.bootstrap) as client,
            pytest.raises(KafkaError, match="CLUSTER_AUTHORIZATION_FAILED"),
        ):
            list_groups(client)
