"""The disk in memory that the log's tests run on; it is the simulator's."""

from kafkalite.sim.disk import Content, SimDisk, SimFile

__all__ = ["Content", "SimDisk", "SimFile"]
