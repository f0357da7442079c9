"""Operations as requests of one transaction of kazoo."""

from collections.abc import Callable, Collection, Iterable
from typing import Any

from kafkalite.meta.zookeeper.multi_operations import Append, Create, Delete, Operation, Set


def fill(
    transaction: Any,
    operations: Iterable[Operation],
    overwritten: Collection[str],
    acl_of: Callable[[str], list[Any]],
) -> None:
    """Add operations to a transaction.

    Args:
        transaction: of kazoo.
        operations: in order.
        overwritten: nodes that are there though they should be made.
        acl_of: returns who may do what with a new node.
    """
    for operation in operations:
        match operation:
            case Create(path=path, data=data) if path in overwritten:
                transaction.set_data(path, data)
            case Create(path=path, data=data):
                transaction.create(path, data, acl_of(path))
            case Append(path=path, data=data):
                transaction.create(path, data, acl_of(path), sequence=True)
            case Set(path=path, data=data, version=version):
                transaction.set_data(path, data, version)
            case Delete(path=path):
                transaction.delete(path)
