"""DescribeTransactions and ListTransactions (keys 65, 66).

DescribeTransactions 0 (KIP-664). ListTransactions 0-2: v1 duration (KIP-994), v2 pattern of
transactional ids (KIP-1152).
"""

import re
from typing import NoReturn

from kafkalite.api.context import RequestContext
from kafkalite.api.coordinator_requests import client_code, gather
from kafkalite.api.handler import Handler
from kafkalite.deferred import Deferred
from kafkalite.txn.events import DescribeTransaction, ListTransactions
from kafkalite.txn.states import TransactionState
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages import describe_transactions, list_transactions
from kafkalite.wire.messages.describe_transactions import (
    DESCRIBE_TRANSACTIONS,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from kafkalite.wire.messages.list_transactions import (
    LIST_TRANSACTIONS,
    ListTransactionsRequest,
    ListTransactionsResponse,
)

STATES = {state.label: state for state in TransactionState}


def describe(
    request: DescribeTransactionsRequest, context: RequestContext
) -> DescribeTransactionsResponse | Deferred[DescribeTransactionsResponse]:
    """Describe each transactional id by itself."""
    return gather(
        request.transactional_ids,
        lambda transactional_id: _describe(transactional_id, context),
        _not_described,
        lambda states: DescribeTransactionsResponse(transaction_states=states),
    )


def refuse_describe(
    request: DescribeTransactionsRequest, error: KafkaError, context: RequestContext
) -> DescribeTransactionsResponse:
    """Answer the error for each transactional id."""
    del context
    states = [_not_described(name, error) for name in request.transactional_ids]
    return DescribeTransactionsResponse(transaction_states=states)


def _describe(
    transactional_id: str, context: RequestContext
) -> describe_transactions.TransactionState | Deferred[describe_transactions.TransactionState]:
    if not transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
    event = DescribeTransaction(transactional_id)
    return context.services.transactions.ask(transactional_id, event)


def _not_described(
    transactional_id: str, error: KafkaError
) -> describe_transactions.TransactionState:
    return describe_transactions.TransactionState(
        transactional_id=transactional_id, error_code=client_code(error)
    )


def list_all(
    request: ListTransactionsRequest, context: RequestContext
) -> ListTransactionsResponse | Deferred[ListTransactionsResponse]:
    """List the transactions that are coordinated here and pass every filter."""
    known = frozenset(STATES[name] for name in request.state_filters if name in STATES)
    unknown = [name for name in request.state_filters if name not in STATES]
    event = ListTransactions(
        states=known,
        producer_ids=frozenset(request.producer_id_filters),
        longer_than_ms=request.duration_filter,
        pattern=_pattern(request.transactional_id_pattern),
    )
    # A filter of nothing but states that do not exist lets nothing pass.
    asks = bool(known) or not unknown
    answers = context.services.transactions.ask_all(event) if asks else []

    def convert(lists: list[list[list_transactions.TransactionState]]) -> ListTransactionsResponse:
        return ListTransactionsResponse(
            error_code=ErrorCode.NONE,
            unknown_state_filters=unknown,
            transaction_states=[state for states in lists for state in states],
        )

    return gather(answers, lambda answer: answer, _reraise, convert)


def refuse_list(
    request: ListTransactionsRequest, error: KafkaError, context: RequestContext
) -> ListTransactionsResponse:
    """Answer the error."""
    del request, context
    return ListTransactionsResponse(error_code=client_code(error))


def _pattern(pattern: str | None) -> "re.Pattern[str] | None":
    if not pattern:
        return None
    try:
        return re.compile(pattern)
    except re.error as error:
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION, f"transactional id pattern {pattern!r}: {error}"
        ) from None


def _reraise(answer: object, error: KafkaError) -> NoReturn:
    del answer
    raise error


HANDLERS = (
    Handler(DESCRIBE_TRANSACTIONS, describe, refuse_describe),
    Handler(LIST_TRANSACTIONS, list_all, refuse_list),
)
