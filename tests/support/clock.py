"""A clock that moves only when a test moves it."""


class ManualClock:
    """A `Clock` that starts at 2026-01-01T00:00:00Z unless another instant is given, and does not move by itself."""

    def __init__(self, now_ms: int = 1_767_225_600_000) -> None:
        self._now_ms = now_ms
        self._steady_ms = 0

    def now_ms(self) -> int:
        return self._now_ms

    def steady_ms(self) -> int:
        return self._steady_ms

    def advance(self, *, seconds: float = 0, ms: int = 0) -> None:
        """Let time pass."""
        self._steady_ms += round(seconds * 1000) + ms
        self._now_ms += round(seconds * 1000) + ms

    def step(self, ms: int) -> None:
        """Set the clock: no time passes."""
        self._now_ms += ms
