"""The fields of a cron expression: checked by the documented table, and read as sets of values.

Six fields: seconds, minutes, hours, day of month, month, day of week (1 is Monday, 7 is Sunday). Nothing below looks at
the spelling again, so `*`, `*/1`, `0/1`, `0-23` and a list of all hours are one schedule. An error points at the field.
"""

import re
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Final

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
MINUTES, HOURS, DAY_OF_MONTH, DAY_OF_WEEK = 1, 2, 3, 5
DAYS_OF_MONTHS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


@dataclass(frozen=True)
class Cron:
    """A checked expression: the values that each field names. Days match if all three of their fields do."""

    second: int
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]

    @cached_property
    def minutes_of_day(self) -> list[int]:
        """The times of a day, in minutes after midnight, in order."""
        return sorted(hour * 60 + minute for hour in self.hours for minute in self.minutes)

    @property
    def is_of_every_hour(self) -> bool:
        """Whether each hour of a day has the same times."""
        return self.hours == _each(HOURS, 1)

    @cached_property
    def is_repeated(self) -> bool:
        """Whether times that a clock shows twice are due twice: those of each n-th hour, or each n-th minute."""
        return any(
            self.hours == _each(HOURS, step) or self.minutes == _each(MINUTES, step)
            for step in range(1, FIELDS[1].last)
        )

    def matches(self, day: date) -> bool:
        """Whether it is due on that day."""
        return day.month in self.months and day.day in self.days and day.isoweekday() in self.weekdays


def read_cron(expression: str) -> Cron:
    """Check a cron expression of six fields; raises ExpressionRejected, which points at the field."""
    given = [(each[0], each.start() + 1) for each in re.finditer(r"\S+", expression)]
    if given and re.match("(?:CRON_)?TZ=", given[0][0]):
        raise ExpressionRejected(f"{given[0][0]!r} is not part of the expression: the zone is the field `timeZone`")
    if len(given) != len(FIELDS):
        raise ExpressionRejected(_count_message(len(given)))
    values = [_read(number, text, column) for number, (text, column) in enumerate(given)]
    days = [given[number][0] in "*?" for number in (DAY_OF_MONTH, DAY_OF_WEEK)]
    if not any(days):
        text, column = given[DAY_OF_WEEK]
        raise _rejected(DAY_OF_WEEK, column, f"{text!r} restricts the days as day of month does: set one of them to ?")
    (second,), minutes, hours, days_of_month, months, weekdays = values
    if min(days_of_month) > max(DAYS_OF_MONTHS[month - 1] for month in months):
        text, column = given[DAY_OF_MONTH]
        raise _rejected(DAY_OF_MONTH, column, f"none of the months has a day {text!r}")
    return Cron(second, minutes, hours, days_of_month, months, weekdays)


def _each(number: int, step: int) -> frozenset[int]:
    """The values of `*/<step>`."""
    field = FIELDS[number]
    return frozenset(range(field.first, field.last + 1, step)) if step <= field.last else frozenset()


def _count_message(count: int) -> str:
    names = ", ".join(field.name for field in FIELDS)
    hint = "; it begins with the seconds: write 0 before five fields" if count == len(FIELDS) - 1 else ""
    return f"a cron expression has 6 fields ({names}), or is @every <n>m; this one has {count}{hint}"


def _read(number: int, text: str, column: int) -> frozenset[int]:
    """The values of a field."""
    field = FIELDS[number]
    if text == "?" and "?" in field.special:
        return _each(number, 1)
    terms = text.split(",") if "," in field.special else [text]
    return frozenset(value for term in terms for value in _term(number, term, column))


def _term(number: int, term: str, column: int) -> range:
    field = FIELDS[number]
    values, slash, step = term.partition("/")
    if slash and "/" not in field.special:
        raise _rejected(number, column, f"{term!r} is not one of {field.rule}")
    if slash and (not NUMBER.match(step) or not 1 <= int(step) <= field.last):
        raise _rejected(number, column, f"the step {step!r} is not a number from 1 to {field.last}")
    by = int(step) if slash else 1
    if values == "*" and "*" in field.special:
        return range(field.first, field.last + 1, by)
    first, dash, last = values.partition("-")
    if dash and "-" not in field.special:
        raise _rejected(number, column, f"{term!r} is not one of {field.rule}")
    begin = _value(number, first, column)
    if not dash:
        return range(begin, field.last + 1 if slash else begin + 1, by)
    end = _value(number, last, column)
    if end < begin:
        raise _rejected(number, column, f"the range {values!r} ends before it begins; write it as two ranges")
    return range(begin, end + 1, by)


def _value(number: int, text: str, column: int) -> int:
    field = FIELDS[number]
    value = field.names.get(text.upper())
    if value is None and NUMBER.match(text):
        value = int(text)
    if value is None or not field.first <= value <= field.last:
        raise _rejected(number, column, f"{text!r} is not one of {field.rule}")
    return value


def _rejected(number: int, column: int, reason: str) -> ExpressionRejected:
    return ExpressionRejected(f"{FIELDS[number].name} (field {number + 1}, column {column}): {reason}")
