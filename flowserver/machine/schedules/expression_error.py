"""Why an expression of a schedule is refused."""


class ExpressionRejected(ValueError):
    """The text cannot be used; the message says why, and points at the field."""
