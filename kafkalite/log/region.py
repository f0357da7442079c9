"""A piece of a file that is to be sent, without having been read."""

import errno
from collections.abc import Callable

from kafkalite.log.disk import File


class FileRegion:
    """`length` bytes of `file` from `position`.

    Holding a region keeps the file open, so a segment may be renamed or deleted while it is being
    sent. Only truncation can take bytes away from under it: `read` then raises, and so must
    whoever uses sendfile when it comes up short.

    `next_offset` is the offset after the last batch in the region (exclusive end), -1 where nobody
    asked; what a read_committed reader must know of depends on it (rule 116).

    `on_error` is called with EIO, the disk's own: it shows when the region is sent, and nobody asks
    the log any more.
    """

    __slots__ = ("file", "length", "next_offset", "on_error", "position")

    def __init__(
        self,
        file: File | None,
        position: int,
        length: int,
        *,
        next_offset: int = -1,
        on_error: Callable[[OSError], object] | None = None,
    ) -> None:
        assert file is not None or length == 0, "only an empty region has no file"
        self.on_error = on_error
        self.next_offset = next_offset
        self.file = file
        self.position = position
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __repr__(self) -> str:
        return f"FileRegion({self.file!r}, position={self.position}, length={self.length})"

    def fileno(self) -> int:
        """Return the descriptor to send from. An empty region has none."""
        if self.file is None:
            raise OSError(errno.EBADF, "an empty region has no file")
        return self.file.fileno()

    def read(self) -> bytes:
        """Return the bytes.

        Raises:
            OSError: the disk fails, or the file has become shorter than the region.
        """
        if self.file is None:
            return b""
        try:
            data = self.file.pread(self.length, self.position)
        except OSError as error:
            self.note_error(error)
            raise
        if len(data) != self.length:
            raise OSError(
                f"{self.length} bytes at {self.position} were promised, {len(data)} are left"
            )
        return data

    def note_error(self, error: OSError) -> None:
        """Tell the log of an error of reading or sending, if it is the disk's."""
        if error.errno == errno.EIO and self.on_error is not None:
            self.on_error(error)


EMPTY_REGION = FileRegion(None, 0, 0)
