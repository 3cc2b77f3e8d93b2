"""FIFO queues by key, served round robin: each key gets its turn, however much waits under another one."""

from collections import OrderedDict, deque
from collections.abc import Hashable, Iterator, KeysView
from itertools import chain
from typing import Generic, TypeVar

T = TypeVar("T")


class KeyedFifos(Generic[T]):
    """The queues, all of which hold an item at least. For one thread."""

    def __init__(self) -> None:
        self._fifos: OrderedDict[Hashable, deque[T]] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[T]:
        return chain.from_iterable(self._fifos.values())

    @property
    def keys(self) -> KeysView[Hashable]:
        """The keys under which items wait, in the order of their turns."""
        return self._fifos.keys()

    @property
    def first(self) -> Hashable:
        """The key whose turn is next; there must be one."""
        return next(iter(self._fifos))

    def has_other_than(self, key: Hashable) -> bool:
        """Whether items wait under another key."""
        return len(self._fifos) > (key in self._fifos)

    def append(self, key: Hashable, item: T) -> None:
        """Add an item to the queue of the key, whose first item makes it the last in turn."""
        self._fifo_of(key).append(item)
        self._count += 1

    def pop(self) -> T:
        """Remove and return the first item of the key whose turn it is, and make the key the last in turn."""
        key, fifo = self._fifos.popitem(last=False)
        item = fifo.popleft()
        if fifo:
            self._fifos[key] = fifo
        self._count -= 1
        return item

    def put_back(self, key: Hashable, item: T) -> None:
        """Undo the last `pop`."""
        self._fifo_of(key).appendleft(item)
        self._fifos.move_to_end(key, last=False)
        self._count += 1

    def _fifo_of(self, key: Hashable) -> deque[T]:
        fifo = self._fifos.get(key)
        if fifo is None:
            fifo = self._fifos[key] = deque()
        return fifo


class NestedFifos(Generic[T]):
    """Queues by two keys: round robin among the outer ones, and within each among the inner ones. For one thread."""

    def __init__(self) -> None:
        self._outer: OrderedDict[Hashable, KeyedFifos[T]] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[T]:
        return chain.from_iterable(self._outer.values())

    @property
    def first(self) -> Hashable:
        """The inner key whose turn is next; there must be one."""
        return next(iter(self._outer.values())).first

    def has_other_than(self, key: Hashable) -> bool:
        """Whether items wait under another inner key."""
        return any(fifos.has_other_than(key) for fifos in self._outer.values())

    def append(self, key: tuple[Hashable, Hashable], item: T) -> None:
        """Add an item to the queue of an outer and an inner key."""
        self._fifos_of(key[0]).append(key[1], item)
        self._count += 1

    def pop(self) -> T:
        """Remove and return the first item of the keys whose turn it is, and make both the last in turn."""
        key, fifos = self._outer.popitem(last=False)
        item = fifos.pop()
        if fifos:
            self._outer[key] = fifos
        self._count -= 1
        return item

    def put_back(self, key: tuple[Hashable, Hashable], item: T) -> None:
        """Undo the last `pop`."""
        self._fifos_of(key[0]).put_back(key[1], item)
        self._outer.move_to_end(key[0], last=False)
        self._count += 1

    def _fifos_of(self, outer: Hashable) -> KeyedFifos[T]:
        fifos = self._outer.get(outer)
        if fifos is None:
            fifos = self._outer[outer] = KeyedFifos()
        return fifos
