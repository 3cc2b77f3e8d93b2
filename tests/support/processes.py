"""A process's resource use as the operating system counts it: processor time, memory, bytes written."""

import os
import time
from pathlib import Path


def cpu_seconds_of(pid: int) -> float:
    """User and system time of all threads of a process so far, to the nanosecond; 0 if it has ended."""
    try:
        return time.clock_gettime(~pid << 3 | 2)  # Linux's number of the process's own CPU clock
    except OSError:
        return 0.0


def resident_bytes_of(pid: int) -> int:
    """Present resident memory."""
    return _status(pid, "VmRSS")


def peak_bytes_of(pid: int) -> int:
    """Peak resident memory of the process."""
    return _status(pid, "VmHWM")


def written_bytes_of(pid: int) -> int:
    """Bytes that the process has caused to be written to a disk; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next(int(line.split()[1]) for line in lines if line.startswith("write_bytes"))


def machine_cpu_seconds() -> float:
    """The time that all processors have worked so far; waiting for a disk does not count."""
    user, nice, system, _, _, irq, softirq, *_ = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    return sum(map(int, (user, nice, system, irq, softirq))) / os.sysconf("SC_CLK_TCK")


def parent_of(pid: int) -> int:
    """The process that started it."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def children_of(pid: int) -> list[int]:
    """The running processes that it has started."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def family_of(pid: int) -> list[int]:
    """The process and those that it has started; none if it has ended."""
    try:
        return [pid, *children_of(pid)]
    except FileNotFoundError:
        return []


def _status(pid: int, name: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))
