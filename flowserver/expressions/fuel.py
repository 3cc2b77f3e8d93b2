"""A budget for evaluating expressions, so that a small text cannot cost much memory or time on a large input."""


class OutOfFuel(Exception):
    """The budget is used up; the caller that made it decides what that means."""


class Fuel:
    """A budget of `limit` values that an evaluation may visit; one may be shared by several evaluations."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0

    @property
    def is_spent(self) -> bool:
        """Whether more was spent than the limit."""
        return self.used > self.limit

    def spend(self, values: int) -> None:
        """Count that many values. Raises OutOfFuel past the limit, and on every later call."""
        self.used += values
        if self.is_spent:
            raise OutOfFuel
