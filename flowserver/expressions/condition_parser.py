"""Tokens of a condition to its tree, by recursive descent along the grammar.

or    = and { "||" and }
and   = cmp { "&&" cmp }
cmp   = unary { ("==" | "!=" | "<" | "<=" | ">" | ">=" | "in") unary }
unary = ("!" | "-") unary | constant | path | "(" or ")"
"""

from typing import Final

from flowserver.expressions.condition_nodes import (
    And,
    Compare,
    Literal,
    Negate,
    Node,
    Not,
    Operator,
    Or,
    Select,
)
from flowserver.expressions.condition_tokens import Kind, Token, condition_tokens
from flowserver.expressions.errors import ExpressionError

NESTING_MAX: Final = 50
"""Deepest nesting of parentheses and prefix operators; bounds the recursion of parsing and of evaluation."""

CONDITION_CHARACTERS_MAX: Final = 4_096
"""Longest condition text; bounds its tree, and so the time that parsing and evaluation take."""

_OPERATORS = frozenset(Operator)


def parse_condition(text: str) -> Node:
    """The tree of a condition; raises ExpressionError with the place of the mistake."""
    if len(text) > CONDITION_CHARACTERS_MAX:
        message = f"a condition has at most {CONDITION_CHARACTERS_MAX} characters"
        raise ExpressionError(message, CONDITION_CHARACTERS_MAX)
    parser = _Parser(condition_tokens(text))
    node = parser.disjunction(0)
    parser.expect_end()
    return node


class _Parser:
    """One pass over the tokens; every method consumes what it parses."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._position = 0

    @property
    def _token(self) -> Token:
        return self._tokens[self._position]

    def _take(self, *marks: str) -> str | None:
        """Consume the next token if it is one of these marks."""
        token = self._token
        if token.kind is not Kind.MARK or token.value not in marks:
            return None
        self._position += 1
        return str(token.value)

    def expect_end(self) -> None:
        if self._token.kind is Kind.END:
            return
        if self._token.value == "-":
            raise ExpressionError("arithmetic is not supported", self._token.offset)
        if self._token.value == ")":
            raise ExpressionError("this parenthesis was not opened", self._token.offset)
        raise ExpressionError("an operator is expected here", self._token.offset)

    def disjunction(self, depth: int) -> Node:
        operands = [self._conjunction(depth)]
        while self._take("||"):
            operands.append(self._conjunction(depth))
        return Or(tuple(operands)) if len(operands) > 1 else operands[0]

    def _conjunction(self, depth: int) -> Node:
        operands = [self._comparison(depth)]
        while self._take("&&"):
            operands.append(self._comparison(depth))
        return And(tuple(operands)) if len(operands) > 1 else operands[0]

    def _comparison(self, depth: int) -> Node:
        first = self._unary(depth)
        rest: list[tuple[Operator, Node]] = []
        while operator := self._take(*_OPERATORS):
            rest.append((Operator(operator), self._unary(depth)))
        return Compare(first, tuple(rest)) if rest else first

    def _unary(self, depth: int) -> Node:
        if depth > NESTING_MAX:
            raise ExpressionError(f"nested deeper than {NESTING_MAX} levels", self._token.offset)
        if self._take("!"):
            return Not(self._unary(depth + 1))
        if self._take("-"):
            return Negate(self._unary(depth + 1))
        return self._primary(depth)

    def _primary(self, depth: int) -> Node:
        token = self._token
        if self._take("("):
            node = self.disjunction(depth + 1)
            if not self._take(")"):
                raise ExpressionError("this parenthesis is not closed", token.offset)
            return node
        if token.kind is Kind.MARK or token.kind is Kind.END:
            raise ExpressionError("a value is expected here", token.offset)
        self._position += 1
        return Select(token.value) if token.kind is Kind.PATH else Literal(token.value)
