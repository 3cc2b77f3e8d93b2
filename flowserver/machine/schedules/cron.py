"""The fields of a cron expression: what each may hold, checked by the documented table before cronsim reads them.

Six fields: seconds, minutes, hours, day of month, month, day of week. cronsim alone would take JAN-JAN for January and
refuse MON-SUN; here names become numbers first (1 is Monday, 7 is Sunday), and an error points at the field.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from cronsim import CronSim, CronSimError

from flowserver.machine.schedules.expression_error import ExpressionRejected

DAY_NAMES: Final = {name: n for n, name in enumerate(("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"), 1)}
MONTH_NAMES: Final = {
    name: n
    for n, name in enumerate(("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"), 1)
}
NUMBER = re.compile(r"[0-9]{1,4}\Z")


@dataclass(frozen=True, slots=True)
class Field:
    """A field: its name, the values that it may hold, the names of values, and the special characters it takes."""

    name: str
    first: int
    last: int
    special: str
    names: dict[str, int]

    @property
    def rule(self) -> str:
        """What the field may hold, as messages say it."""
        names = list(self.names)
        named = f" or {names[0]} to {names[-1]}" if names else ""
        special = f", and the characters {' '.join(self.special)}" if self.special else ", a single number"
        return f"{self.first} to {self.last}{named}{special}"


FIELDS: Final = (
    Field("seconds", 0, 59, "", {}),
    Field("minutes", 0, 59, ",-*/", {}),
    Field("hours", 0, 23, ",-*/", {}),
    Field("day of month", 1, 31, ",-*?/", {}),
    Field("month", 1, 12, ",-*/", MONTH_NAMES),
    Field("day of week", 1, 7, ",-*?", DAY_NAMES),
)
DAY_OF_MONTH, DAY_OF_WEEK = 3, 5


@dataclass(frozen=True, slots=True)
class Cron:
    """A checked expression: the second, and the five fields that cronsim evaluates."""

    second: int
    five_fields: str


def read_cron(expression: str) -> Cron:
    """Check a cron expression of six fields; raises ExpressionRejected, which points at the field."""
    given = [(each[0], each.start() + 1) for each in re.finditer(r"\S+", expression)]
    if len(given) != len(FIELDS):
        raise ExpressionRejected(_count_message(len(given)))
    canonical = [_read(number, text, column) for number, (text, column) in enumerate(given)]
    days = [given[number][0] in "*?" for number in (DAY_OF_MONTH, DAY_OF_WEEK)]
    if not any(days):
        text, column = given[DAY_OF_WEEK]
        raise _rejected(DAY_OF_WEEK, column, f"{text!r} restricts the days as day of month does: set one of them to ?")
    five_fields = " ".join(canonical[1:])
    _check_possible(five_fields, given[DAY_OF_MONTH])
    return Cron(int(canonical[0]), five_fields)


def _count_message(count: int) -> str:
    names = ", ".join(field.name for field in FIELDS)
    hint = "; it begins with the seconds: write 0 before five fields" if count == len(FIELDS) - 1 else ""
    return f"a cron expression has 6 fields ({names}), or is @every <n>m; this one has {count}{hint}"


def _read(number: int, text: str, column: int) -> str:
    """The field as cronsim reads it."""
    field = FIELDS[number]
    if text == "?" and "?" in field.special:
        return "*"
    terms = text.split(",") if "," in field.special else [text]
    return ",".join(_term(number, term, column) for term in terms)


def _term(number: int, term: str, column: int) -> str:
    field = FIELDS[number]
    values, slash, step = term.partition("/")
    if slash and "/" not in field.special:
        raise _rejected(number, column, f"{term!r} is not one of {field.rule}")
    if slash and (not NUMBER.match(step) or not 1 <= int(step) <= field.last):
        raise _rejected(number, column, f"the step {step!r} is not a number from 1 to {field.last}")
    if values == "*" and "*" in field.special:
        return f"*{slash}{step}"
    first, dash, last = values.partition("-")
    if dash and "-" not in field.special:
        raise _rejected(number, column, f"{term!r} is not one of {field.rule}")
    begin = _value(number, first, column)
    if not dash:
        return f"{begin}{slash}{step}"
    end = _value(number, last, column)
    if end < begin:
        raise _rejected(number, column, f"the range {values!r} ends before it begins; write it as two ranges")
    return f"{begin}-{end}{slash}{step}" if begin < end else f"{begin}"


def _value(number: int, text: str, column: int) -> int:
    field = FIELDS[number]
    value = field.names.get(text.upper())
    if value is None and NUMBER.match(text):
        value = int(text)
    if value is None or not field.first <= value <= field.last:
        raise _rejected(number, column, f"{text!r} is not one of {field.rule}")
    return value


def _check_possible(five_fields: str, day_of_month: tuple[str, int]) -> None:
    """Refuse a day that none of the months has."""
    try:
        CronSim(five_fields, datetime(2000, 1, 1, tzinfo=UTC))
    except CronSimError:
        text, column = day_of_month
        raise _rejected(DAY_OF_MONTH, column, f"none of the months has a day {text!r}") from None


def _rejected(number: int, column: int, reason: str) -> ExpressionRejected:
    return ExpressionRejected(f"{FIELDS[number].name} (field {number + 1}, column {column}): {reason}")
