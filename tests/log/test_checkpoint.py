"""Kafka's text files: what is written, and that damage is noticed."""

from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.log.checkpoint import (
    format_epochs,
    format_offsets,
    format_partition_metadata,
    format_properties,
    format_uuid,
    parse_epochs,
    parse_offsets,
    parse_partition_metadata,
    parse_properties,
    parse_uuid,
    read_epochs,
    read_offsets,
    read_partition_metadata,
    read_properties,
    write_epochs,
    write_offsets,
    write_partition_metadata,
    write_properties,
)
from kafkalite.log.disk import OsDisk
from kafkalite.log.leader_epochs import EpochStart
from kafkalite.types import TopicPartition

OFFSETS = {TopicPartition("orders", 0): 17, TopicPartition("a.b_c-d", 12): 2**40}
EPOCHS = [EpochStart(0, 0), EpochStart(4, 2**33)]
TOPIC_ID = UUID("7cab35a9-43a6-4b06-b9d8-8fbd7c6bb9fe")


class TestText:
    def test_offsets(self):
        text = "0\n2\norders 0 17\na.b_c-d 12 1099511627776\n"
        assert format_offsets(OFFSETS) == text
        assert parse_offsets(text) == OFFSETS

    def test_epochs(self):
        text = "0\n2\n0 0\n4 8589934592\n"
        assert format_epochs(EPOCHS) == text
        assert parse_epochs(text) == EPOCHS

    def test_no_entries(self):
        assert format_offsets({}) == "0\n0\n"
        assert parse_offsets("0\n0\n") == parse_offsets("") == parse_offsets("0\n") == {}

    def test_blanks_as_kafka_reads_them(self):
        assert parse_offsets("0\n1\norders  0\t17\n") == {TopicPartition("orders", 0): 17}

    @pytest.mark.parametrize(
        "text",
        [
            "1\n0\n",
            "0\n2\norders 0 17\n",
            "0\n1\norders 0\n",
            "0\n1\norders 0 x\n",
            "0\nx\norders 0 17\n",
            "0\n0\norders 0 17\n",
            "\0\0\0\0\n\0\0\0\0\n",
        ],
    )
    def test_damage_is_noticed(self, text):
        with pytest.raises(ValueError, match=r"checkpoint|invalid literal"):
            parse_offsets(text)

    def test_partition_metadata(self):
        text = "version: 0\ntopic_id: fKs1qUOmSwa52I-9fGu5_g"
        assert format_partition_metadata(TOPIC_ID) == text
        assert parse_partition_metadata(text) == parse_partition_metadata(text + "\n") == TOPIC_ID

    @pytest.mark.parametrize(
        "text",
        [
            "topic_id: fKs1qUOmSwa52I-9fGu5_g",
            "version: 1\ntopic_id: fKs1qUOmSwa52I-9fGu5_g",
            "version: 0",
            "version: 0\ntopic_id: fKs1",
        ],
    )
    def test_damaged_partition_metadata_is_noticed(self, text):
        with pytest.raises(ValueError, match=r"partition metadata|uuid"):
            parse_partition_metadata(text)

    @given(st.uuids())
    def test_uuids_round_trip(self, uuid):
        text = format_uuid(uuid)
        assert len(text) == 22
        assert parse_uuid(text) == uuid


class TestProperties:
    def test_meta_properties_as_kafka_writes_them(self):
        text = "#\n#Tue Nov 21 03:00:00 UTC 2023\nnode.id=1\ndirectory.id=abc\\=\nversion=1\n"
        assert parse_properties(text) == {"node.id": "1", "directory.id": "abc=", "version": "1"}

    def test_forms_that_java_allows(self):
        text = "! comment\n\n a : b\nc d\ne=\nf\n g\\u0041\\=\\ h=\\ti \n"
        assert parse_properties(text) == {
            "a": "b",
            "c": "d",
            "e": "",
            "f": "",
            "gA= h": "\ti",
        }

    @given(
        st.dictionaries(
            st.text("abc.=:# !\\\t", min_size=1, max_size=8),
            st.text("abc.=:# !\\\n\f\r\t", max_size=8).map(str.rstrip),
        )
    )
    def test_round_trip(self, properties):
        assert parse_properties(format_properties(properties)) == properties


class TestFiles:
    def test_round_trips(self, tmp_path):
        disk = OsDisk()
        path = str(tmp_path / "file")
        write_offsets(disk, path, OFFSETS)
        assert read_offsets(disk, path) == OFFSETS
        write_epochs(disk, path, EPOCHS, sync=False)
        assert read_epochs(disk, path) == EPOCHS
        topic_id = uuid4()
        write_partition_metadata(disk, path, topic_id)
        assert read_partition_metadata(disk, path) == topic_id
        write_properties(disk, path, {"cluster.id": "x"})
        assert read_properties(disk, path) == {"cluster.id": "x"}

    def test_absent_files_say_nothing(self, tmp_path):
        disk = OsDisk()
        path = str(tmp_path / "absent")
        assert read_offsets(disk, path) == {}
        assert read_epochs(disk, path) == []
        assert read_partition_metadata(disk, path) is None
        assert read_properties(disk, path) == {}
