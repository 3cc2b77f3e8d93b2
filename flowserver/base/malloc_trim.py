"""Giving memory back to the operating system."""

from flowserver.base.lazy_import import load


def give_back_memory() -> None:
    """Return the process's free memory to the system. Works with glibc only; elsewhere nothing happens.

    By itself glibc returns only what is free at the end of its heap, so a peak would last as long as the process.
    """
    trim = getattr(load("ctypes:CDLL")(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
