"""The one error of this package: an expression's text is not in the language. Evaluation can only run out of fuel."""


class ExpressionError(ValueError):
    """The text of an expression is refused; `offset` is the 0-based place of the mistake within that text."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset

    def shifted(self, by: int) -> "ExpressionError":
        """The same error, at its place in a text in which this expression starts at offset `by`."""
        return ExpressionError(self.message, self.offset + by)
