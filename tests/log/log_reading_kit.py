"""Logs, and what is read from them."""


def read(log, offset, *, max_bytes=1 << 20, upper=None, min_one_batch=True):
    region = log.read(
        offset,
        max_bytes=max_bytes,
        upper=upper or log.log_end_position,
        min_one_batch=min_one_batch,
    )
    return region.read()
