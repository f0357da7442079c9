"""The API's cluster: brokers, transactions, and what the API is."""

from pathlib import Path
from typing import Any, Final

import kafkalite
from kafkalite.http.routing import HttpRequest, HttpResponse, Route
from kafkalite.observe.answers import Routes
from kafkalite.observe.cluster import (
    TRANSACTION_COORDINATOR,
    Cluster,
    broker_ids,
    check,
    coordinator,
    metadata,
)
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.describe_transactions import (
    DESCRIBE_TRANSACTIONS,
    DescribeTransactionsRequest,
)
from kafkalite.wire.messages.init_producer_id import (
    INIT_PRODUCER_ID,
    InitProducerIdRequest,
)
from kafkalite.wire.messages.list_transactions import (
    LIST_TRANSACTIONS,
    ListTransactionsRequest,
)

OPENAPI: Final = Path(__file__).with_name("openapi.json")


class ClusterRoutes:
    """Answers about the cluster as a whole.

    Args:
        cluster: whom to ask.
        facts: what else is to be told of it, such as the profile of a broker.
    """

    def __init__(self, cluster: Cluster, facts: Any) -> None:
        self._cluster = cluster
        self._facts = facts

    def routes(self) -> list[Route]:
        """Return what is answered."""
        add = Routes(self._cluster)
        add.get("/cluster", self._describe)
        add.get("/openapi.json", self._openapi)
        add.get("/transactions", self._transactions)
        add.get("/transactions/{id}", self._transaction)
        add.write("POST", "/transactions/{id}/abort", self._abort)
        return add.list

    async def _openapi(self, request: HttpRequest) -> HttpResponse:
        del request
        return HttpResponse(body=OPENAPI.read_bytes())

    async def _describe(self, request: HttpRequest) -> dict[str, Any]:
        del request
        answer = await metadata(self._cluster, [])
        check(answer.error_code)
        return {
            "cluster_id": answer.cluster_id,
            "controller_id": answer.controller_id,
            "brokers": [
                {
                    "id": broker.node_id,
                    "host": broker.host,
                    "port": broker.port,
                    "rack": broker.rack,
                    "is_controller": broker.node_id == answer.controller_id,
                }
                for broker in sorted(answer.brokers, key=lambda each: each.node_id)
            ],
            "topics": len(await self._cluster.topic_names()),
            "can_write": self._cluster.can_write,
            "kafkalite": kafkalite.__version__,
            **self._facts(),
        }

    async def _transactions(self, request: HttpRequest) -> dict[str, Any]:
        """List all transactional ids; with `open=true` only those with something under way."""
        only_open = request.flag("open")
        found = []
        for broker in await broker_ids(self._cluster):
            try:
                answer = await self._cluster.ask(
                    LIST_TRANSACTIONS, ListTransactionsRequest(), broker=broker
                )
            except KafkaError as error:
                if error.code is ErrorCode.UNSUPPORTED_VERSION:
                    raise
                continue
            if answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                continue
            check(answer.error_code)
            for each in answer.transaction_states:
                if only_open and each.transaction_state not in ("Ongoing", "PrepareCommit",
                                                                "PrepareAbort"):  # fmt: skip
                    continue
                found.append(await self._one(each.transactional_id, broker))
        found.sort(key=lambda each: str(each["transactional_id"]))
        return {"count": len(found), "transactions": found}

    async def _transaction(self, request: HttpRequest) -> dict[str, Any]:
        name = request.parameters["id"]
        broker = await coordinator(self._cluster, name, TRANSACTION_COORDINATOR)
        return await self._one(name, broker)

    async def _one(self, name: str, broker: int) -> dict[str, Any]:
        message = DescribeTransactionsRequest(transactional_ids=[name])
        answer = await self._cluster.ask(DESCRIBE_TRANSACTIONS, message, broker=broker)
        (each,) = answer.transaction_states
        check(each.error_code, f"transactional id {name!r}")
        return {
            "transactional_id": name,
            "state": each.transaction_state,
            "producer_id": each.producer_id,
            "producer_epoch": each.producer_epoch,
            "timeout_ms": each.transaction_timeout_ms,
            "started_ms": each.transaction_start_time_ms
            if each.transaction_start_time_ms >= 0
            else None,
            "coordinator": broker,
            "partitions": [
                {"topic": topic.topic, "partitions": sorted(topic.partitions)}
                for topic in each.topics
            ],
        }

    async def _abort(self, request: HttpRequest) -> dict[str, Any]:
        """End what is under way as its producer's successor would: it is fenced."""
        name = request.parameters["id"]
        broker = await coordinator(self._cluster, name, TRANSACTION_COORDINATOR)
        before = await self._one(name, broker)
        message = InitProducerIdRequest(
            transactional_id=name, transaction_timeout_ms=before["timeout_ms"]
        )
        try:
            answer = await self._cluster.ask(INIT_PRODUCER_ID, message, broker=broker)
            check(answer.error_code, f"transactional id {name!r}")
        except KafkaError as error:
            if error.code is not ErrorCode.CONCURRENT_TRANSACTIONS:
                raise  # else it is being ended, and the answer would be to ask again
        return {"transactional_id": name, "state_before": before["state"]}
