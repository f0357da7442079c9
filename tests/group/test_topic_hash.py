"""Hashes of topics against those that Apache Kafka 4.3.1 wrote into its records."""

from base64 import urlsafe_b64decode
from uuid import UUID

from kafkalite.group.topic_hash import combined_hash, topic_hash

T1 = UUID(bytes=urlsafe_b64decode("GanNMudDRRK5KNM4LYAwHg=="))
T2 = UUID(bytes=urlsafe_b64decode("_qR6tRZATg20pr3hVMKOeQ=="))


def test_hash_of_one_topic_is_kafkas():
    assert combined_hash([topic_hash(T1, "t1", [[], [], []])]) == 9122773589282152467


def test_hash_of_two_topics_is_kafkas():
    hashes = [topic_hash(T1, "t1", [[]] * 3), topic_hash(T2, "t2", [[]] * 3)]
    assert combined_hash(hashes) == -7515973944618221013


def test_nothing_hashes_to_0():
    assert combined_hash([]) == 0


def test_name_id_partitions_and_racks_count():
    hashes = [
        topic_hash(T1, "t1", [[], []]),
        topic_hash(T2, "t1", [[], []]),
        topic_hash(T1, "t2", [[], []]),
        topic_hash(T1, "t1", [[]]),
        topic_hash(T1, "t1", [["a"], []]),
        topic_hash(T1, "t1", [[], ["a"]]),
        topic_hash(T1, "t1", [["a", "b"], []]),
    ]
    assert len(set(hashes)) == len(hashes)
