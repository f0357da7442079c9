"""`KafkaContainer` without Docker does what tests for testcontainers-python ask of one."""

import pytest
from confluent_kafka import Consumer, Producer

from kafkalite.testing import KafkaContainer
from kafkalite.testing.processes import unused_port


def test_records_of_a_producer_reach_a_consumer():
    with KafkaContainer() as kafka:
        bootstrap = kafka.get_bootstrap_server()
        host, port = kafka.get_container_host_ip(), kafka.get_exposed_port(kafka.port)
        assert bootstrap == f"{host}:{port}"
        producer = Producer({"bootstrap.servers": bootstrap})
        producer.produce("orders", b"hello")
        assert producer.flush(10) == 0
        settings = {"group.id": "billing", "auto.offset.reset": "earliest"}
        consumer = Consumer({"bootstrap.servers": bootstrap, **settings})
        consumer.subscribe(["orders"])
        assert consumer.poll(10).value() == b"hello"
        consumer.close()


def test_arguments_and_methods_of_the_real_one_are_taken():
    container = (
        KafkaContainer("confluentinc/cp-kafka:7.8.0", port=9095, env={"KAFKA_NUM_PARTITIONS": "3"})
        .with_kraft()
        .with_cluster_id("4L6g3nShT-eMCtK--X86sw")
        .with_env("KAFKA_LISTENERS", "PLAINTEXT://0.0.0.0:9095,CONTROLLER://0.0.0.0:9094")
        .with_envs(KAFKA_CONTROLLER_QUORUM_VOTERS="1@localhost:9094", KAFKA_LOG_RETENTION_HOURS="1")
        .with_exposed_ports(9095)
        .with_name("kafka")
        .with_kwargs(privileged=True)
    )
    assert container.start(timeout=10) is container
    try:
        config = container.broker.server.config
        assert config.int("num.partitions") == 3
        assert config.int("log.retention.hours") == 1
        assert config.str("kafkalite.cluster.id") == "4L6g3nShT-eMCtK--X86sw"
        assert container.get_exposed_port(9095) == container.broker.port
        with pytest.raises(ConnectionError, match="port 9093 is not exposed"):
            container.get_exposed_port(9093)
        assert container.get_logs() == (b"", b"")
    finally:
        container.stop(force=True, delete_volume=True)
    container.stop()


def test_port_of_the_machine_can_be_chosen():
    port = unused_port()
    with KafkaContainer().with_bind_ports("9093/tcp", port).with_bind_ports(1, 2) as kafka:
        assert kafka.get_exposed_port(9093) == port


def test_what_only_a_container_has_is_refused_in_words():
    with pytest.raises(ValueError, match="tls=True"):
        KafkaContainer(security_protocol="SSL")
    with pytest.raises(AttributeError, match="is no container: it has no 'exec'"):
        KafkaContainer().exec("kafka-topics --list")
    with pytest.raises(RuntimeError, match="was not started"):
        KafkaContainer().get_bootstrap_server()


def test_faults_and_the_clock_are_those_of_its_broker():
    with KafkaContainer() as kafka:
        rule = kafka.broker.faults.on("Produce").error("NOT_ENOUGH_REPLICAS").once()
        producer = Producer({"bootstrap.servers": kafka.get_bootstrap_server()})
        producer.produce("orders", b"hello")
        assert producer.flush(10) == 0
        assert rule.hits == 1
        kafka.broker.clock.advance(8 * 24 * 3600)
        assert kafka.broker.records("orders") == []
