"""Simulated machines: a broker each, with a disk that outlives it."""

from collections.abc import Callable, Mapping
from random import Random
from typing import Final

import trio

from kafkalite.config import load_config
from kafkalite.meta.ensemble import Ensemble, EnsembleStore
from kafkalite.meta.store import MetadataStoreError
from kafkalite.server.broker import Broker
from kafkalite.sim.disk import SimDisk
from kafkalite.sim.network import Fabric, HostNetwork
from kafkalite.sim.runtime import SimClock
from kafkalite.wire.errors import ErrorCode, KafkaError

PORT: Final = 9092
_PASSING: Final = (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_CONTROLLER)

RESTART_S: Final = 0.5
"""After so long a broker that could not start tries again, as a supervisor would have it."""


class HostStore(EnsembleStore):
    """A broker's access to the ensemble; a crash is not a farewell."""

    def __init__(self, ensemble: Ensemble) -> None:
        super().__init__(ensemble)
        self._has_crashed = False

    def crash(self) -> None:
        """Be gone: the session ends when its time is up."""
        self._has_crashed = True
        self.cut_off()

    def reconnect(self) -> None:
        """Reach the ensemble again, unless the process is gone."""
        if not self._has_crashed:
            super().reconnect()

    def close(self) -> None:
        """End the session, if there is still somebody to say so."""
        if not self._has_crashed:
            super().close()


class Host:
    """One machine and its broker.

    Args:
        broker_id: of the broker.
        fabric: the network.
        ensemble: where metadata are; None for a broker that is alone.
        settings: of the broker.
        random: for its entropy and what a power failure takes.
        on_failure: told of an error that ended a broker and should not have.
    """

    def __init__(
        self,
        broker_id: int,
        fabric: Fabric,
        ensemble: Ensemble | None,
        settings: Mapping[str, str],
        *,
        random: Random,
        on_failure: Callable[[BaseException], object],
    ) -> None:
        self.broker_id = broker_id
        self.name = f"broker-{broker_id}"
        self.disk = SimDisk(traced=False)
        self.disk.make_directory("/data")
        self.broker: Broker | None = None
        """The broker that serves now; None while there is none."""
        self.store: HostStore | None = None
        self.starts = 0
        self.has_suspect_disk = False
        """Whether its disk has failed since the broker was started, or while it was."""
        self._life: object | None = None
        """Of the run that goes on; a crash ends it, and its broker may need a while to be gone."""
        self._fabric = fabric
        self._ensemble = ensemble
        self._settings = settings
        self._random = random
        self._on_failure = on_failure
        self._network: HostNetwork
        self._scope = trio.CancelScope()
        self._stopped = trio.Event()

    @property
    def is_up(self) -> bool:
        """Whether a broker is to run."""
        return self._life is not None

    def has_failed_logs(self) -> bool:
        """Whether the broker has given up logs because of its disk."""
        return self.broker is not None and any(
            partition.log.failure is not None
            for partition in self.broker.services.replicas.partitions()
        )

    async def run(self) -> None:
        """Run one broker after another, each until it crashes or is stopped; for a task."""
        life = self._life = object()
        stopped = self._stopped = trio.Event()
        while self._life is life:
            self.starts += 1
            self.has_suspect_disk = bool(self.disk.faults) or self.disk.capacity is not None
            self._network = self._fabric.host(self.name)
            self.store = None if self._ensemble is None else HostStore(self._ensemble)
            await self._run_one(self._network)
            if self._life is life:
                await trio.sleep(RESTART_S)
        stopped.set()

    async def _run_one(self, network: HostNetwork) -> None:
        broker = Broker(
            load_config(
                overrides={
                    "node.id": str(self.broker_id),
                    "kafkalite.http.listener": "",
                    "listeners": f"PLAINTEXT://{self.name}:{PORT}",
                    "log.dirs": "/data",
                    **self._settings,
                }
            ),
            clock=SimClock(),
            network=network,
            disk=self.disk,
            store=self.store,
            entropy=Random(self._random.getrandbits(64)),
        )
        try:
            with trio.CancelScope() as self._scope:
                async with trio.open_nursery() as nursery:
                    await nursery.start(broker.run)
                    self.broker = broker
        except BaseException as error:
            has_served = self.broker is broker
            if not network.is_dead and not _is_refusal(error, has_served=has_served):
                self._on_failure(error)
            if _has_cancellation(error):
                raise
        finally:
            if self.broker is broker:
                self.broker = None

    def crash(self, *, loses_data: bool) -> None:
        """End the broker at once: nothing that it still does is seen by anybody.

        Args:
            loses_data: the machine ends with it, and what was not synced is gone.
        """
        self._life = None
        if self.store is not None:
            self.store.crash()
        self._fabric.crash(self._network, silently=loses_data)
        if loses_data:
            self.disk = self.disk.after_power_failure(self._random)
        else:
            self.disk = self.disk.copy()
        broker, self.broker = self.broker, None
        if broker is not None:
            broker._cluster = None  # noqa: SLF001 - it has no time to hand anything over
        self._scope.cancel()

    async def shut_down(self) -> None:
        """Stop the broker as an operator would, and wait for it."""
        self._life = None
        self._scope.cancel()
        await self._stopped.wait()


def _is_refusal(error: BaseException, *, has_served: bool) -> bool:
    """Tell whether a broker gave up for a reason that passes.

    The store is not reached, or (at a start) the disk is full.
    """
    if isinstance(error, BaseExceptionGroup):
        return all(_is_refusal(each, has_served=has_served) for each in error.exceptions)
    if isinstance(error, KafkaError):
        return not has_served and error.code in _PASSING
    return isinstance(error, MetadataStoreError | trio.Cancelled)


def _has_cancellation(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return error.split(trio.Cancelled)[0] is not None
    return isinstance(error, trio.Cancelled)
