"""Giving memory back to the operating system."""

from flowserver.base.loading import load


def give_back_memory() -> None:
    """Return what is free in the process, as far as the C library can: glibc does, elsewhere nothing happens.

    glibc by itself only returns what is free at the end of its heap, so a peak would stay for as long as the process.
    """
    trim = getattr(load("ctypes:CDLL")(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
