"""When schedules are due: the documented fields, error locations, time zones, and `@every`."""

from datetime import UTC, datetime, timedelta
from functools import cache
from random import Random
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowserver.base.clock import format_instant, parse_instant
from flowserver.machine.schedules.counting import count_instants
from flowserver.machine.schedules.cron import read_cron
from flowserver.machine.schedules.expression_error import ExpressionRejected
from flowserver.machine.schedules.timing import InZone, next_instants, read_timing

BERLIN = ZoneInfo("Europe/Berlin")
NEW_YEAR = parse_instant("2026-01-01T00:00:00Z")


def after(expression: str, instant: str, zone: ZoneInfo | None = None, count: int = 1) -> list[str]:
    timing = read_timing(expression, zone or UTC, NEW_YEAR)
    return [format_instant(at)[:19] for at in next_instants(timing, parse_instant(instant), count)]


@pytest.mark.parametrize(
    ("expression", "first"),
    [
        ("0 * * * * *", "2026-01-01T00:01:00"),
        ("30 * * * * ?", "2026-01-01T00:00:30"),
        ("0 0 10 1 * ?", "2026-01-01T10:00:00"),
        ("0 0 0 ? * MON-SUN", "2026-01-02T00:00:00"),
        ("0 0 0 ? * 7", "2026-01-04T00:00:00"),
        ("0 0 0 ? * 1", "2026-01-05T00:00:00"),
        ("0 0 0 1 JAN-JAN *", "2027-01-01T00:00:00"),
        ("0 0 0 1 mar,NOV-dec *", "2026-03-01T00:00:00"),
        ("0 5/20 * * * *", "2026-01-01T00:05:00"),
        ("0 0 8-18/2 ? * FRI", "2026-01-02T08:00:00"),
        ("0 0 0 29 2 ?", "2028-02-29T00:00:00"),
        ("  0 */15 * * * * ", "2026-01-01T00:15:00"),
    ],
)
def test_the_first_instant(expression: str, first: str) -> None:
    assert after(expression, "2026-01-01T00:00:00Z") == [first]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("30 2 * * *", "this one has 5; it begins with the seconds"),
        ("", "this one has 0"),
        ("CRON_TZ=UTC 0 0 2 * * ?", "the zone is the field `timeZone`"),
        ("TZ=UTC 0 0 2 * * ?", "the zone is the field `timeZone`"),
        ("0 0 0 1 1 ? 2026", "this one has 7"),
        ("* * * * * *", "seconds (field 1, column 1): '*' is not one of 0 to 59, a single number"),
        ("0,30 * * * * *", "seconds (field 1, column 1)"),
        ("0/10 * * * * *", "seconds (field 1, column 1): '0/10' is not one of"),
        ("0-9 * * * * *", "seconds (field 1, column 1): '0-9' is not one of"),
        ("0 60 * * * *", "minutes (field 2, column 3): '60' is not one of 0 to 59"),
        ("0  0 24 * * *", "hours (field 3, column 6): '24' is not one of 0 to 23"),
        ("0 */0 * * * *", "the step '0' is not a number from 1 to 59"),
        ("0 */x * * * *", "the step 'x'"),
        ("0 0 0 L * ?", "day of month (field 4, column 7): 'L' is not one of 1 to 31"),
        ("0 0 0 ? 13 *", "month (field 5, column 9): '13' is not one of 1 to 12 or JAN to DEC"),
        ("0 0 0 ? * 0", "day of week (field 6, column 11): '0' is not one of 1 to 7 or MON to SUN"),
        ("0 0 0 ? * FRI-MON", "the range 'FRI-MON' ends before it begins"),
        ("0 0 0 ? * MON#1", "'MON#1' is not one of"),
        ("0 0 0 ? * MON/2", "'MON/2' is not one of"),
        ("0 0 0 1 * MON", "day of week (field 6, column 11): 'MON' restricts the days as day of month does"),
        ("0 0 0 30 2 ?", "day of month (field 4, column 7): none of the months has a day '30'"),
        ("0 0 ,1 * * *", "hours (field 3, column 5): '' is not one of"),
        ("@every 0m", "is not @every <n>m"),
        ("@every 1h", "is not @every <n>m"),
        ("@every 525601m", "is not @every <n>m"),
        ("@daily", "is not @every <n>m"),
        ("0 " * 200, "longer than 256 characters"),
    ],
)
def test_errors_name_the_field(expression: str, message: str) -> None:
    with pytest.raises(ExpressionRejected) as rejected:
        read_timing(expression, UTC, 0)
    assert message in str(rejected.value)


def test_a_tick_in_a_skipped_hour_runs_at_the_hours_end() -> None:
    assert after("15 30 2 * * ?", "2026-03-28T12:00:00Z", BERLIN, 2) == ["2026-03-29T01:00:15", "2026-03-30T00:30:15"]


def test_an_hour_that_occurs_twice_runs_once() -> None:
    assert after("0 30 2 * * ?", "2026-10-24T12:00:00Z", BERLIN, 2) == ["2026-10-25T00:30:00", "2026-10-26T01:30:00"]
    assert after("0 30 2 * * ?", "2026-10-25T01:15:00Z", BERLIN) == ["2026-10-26T01:30:00"]


def test_every_minute_runs_in_both_hours() -> None:
    timing = read_timing("0 * * * * *", BERLIN, 0)
    begin, end = parse_instant("2026-10-25T00:00:00Z"), parse_instant("2026-10-25T01:59:59Z")
    assert count_instants(timing, begin, end, 1_000) == 120


def _spellings(last: int, step: int) -> list[str]:
    values = [str(value) for value in range(0, last + 1, step)]
    spelled = [f"*/{step}", f"0/{step}", f"0-{last}/{step}", f"0-{values[-1]}/{step}", ",".join(values)]
    return [*spelled, "*", f"0-{last}"] if step == 1 else spelled


ZONES_THAT_CHANGE = {
    "Europe/Berlin": ("2026-03-29", "2026-10-25"),
    "America/New_York": ("2026-03-08", "2026-11-01"),
    "Australia/Lord_Howe": ("2026-04-05", "2026-10-04"),
    "America/Havana": ("2026-03-08", "2026-11-01"),
    "America/Santiago": ("2026-04-05", "2026-09-06"),
    "Atlantic/Azores": ("2026-03-29", "2026-10-25"),
    "Asia/Beirut": ("2026-03-29", "2026-10-25"),
    "Antarctica/Troll": ("2026-03-29", "2026-10-25"),
    "America/St_Johns": ("2006-04-02", "2006-10-29"),
    "Pacific/Apia": ("2011-12-30", "2011-12-31"),
}
CHANGING_DAYS = [(zone, day) for zone, days in ZONES_THAT_CHANGE.items() for day in days]
HOUR_MS, DAY_MS = 3_600_000, 86_400_000


@pytest.mark.parametrize(("zone", "day"), CHANGING_DAYS)
@pytest.mark.parametrize("step", [1, 2, 5])
def test_one_meaning_has_the_same_instants_however_it_is_spelled(zone: str, day: str, step: int) -> None:
    begin, info = parse_instant(f"{day}T00:00:00Z") - DAY_MS, ZoneInfo(zone)
    hours = [next_instants(read_timing(f"0 0 {each} * * ?", info, 0), begin, 60) for each in _spellings(23, step)]
    minutes = [next_instants(read_timing(f"7 {each} 1-2 * * ?", info, 0), begin, 360) for each in _spellings(59, step)]
    assert [each for each in hours if each != hours[0]] == []
    assert [each for each in minutes if each != minutes[0]] == []


def test_each_hour_is_each_hour_when_clocks_go_back() -> None:
    """Reported of 0/1: the second of the two hours had no tick."""
    hours = ["2026-10-24T23:00:00", "2026-10-25T00:00:00", "2026-10-25T01:00:00", "2026-10-25T02:00:00"]
    for spelled in _spellings(23, 1):
        assert after(f"0 0 {spelled} * * ?", "2026-10-24T22:30:00Z", BERLIN, 4) == hours
        assert after(f"0 0 {spelled} * * ?", "2026-03-29T00:00:00Z", BERLIN) == ["2026-03-29T01:00:00"]


def test_a_tick_that_the_clock_skips_is_not_lost_unless_another_follows_within_the_hour() -> None:
    assert after("0 */30 2 * * ?", "2026-03-28T12:00:00Z", BERLIN, 2) == ["2026-03-29T01:00:00", "2026-03-30T00:00:00"]
    assert after("0 30 * * * ?", "2026-03-29T00:30:00Z", BERLIN) == ["2026-03-29T01:30:00"]


@cache
def _shown(zone: str, begin: int, end: int) -> list[tuple[int, datetime]]:
    """Every minute of a range, with what a clock of the zone shows."""
    info = ZoneInfo(zone)
    clock = [(at, datetime.fromtimestamp(at / 1000, info)) for at in range(begin, end + 1, 60_000)]
    return [(at, shown.replace(tzinfo=None, fold=0)) for at, shown in clock]


def _walk(clock: list[tuple[int, datetime]], hours: set[int], minutes: set[int]) -> list[int]:
    """The instants of one range, found by looking at the clock every minute."""
    is_each = any(hours == set(range(0, 24, n)) for n in range(1, 24)) or any(
        minutes == set(range(0, 60, n)) for n in range(1, 60)
    )
    found, seen, before = [], set[datetime](), clock[0][1]
    for at, shown in clock:
        gap = round((shown - before).total_seconds() / 60)
        skipped = (before + timedelta(minutes=n) for n in range(1, gap))
        if shown.hour in hours and shown.minute in minutes:
            if is_each or shown not in seen:
                found.append(at)
        elif len(hours) < 24 and any(each.hour in hours and each.minute in minutes for each in skipped):
            found.append(at)
        seen.add(shown)
        before = shown
    return found


def _fields(last: int) -> st.SearchStrategy[str]:
    value = st.integers(0, last)
    term = st.one_of(
        st.just("*"),
        value.map(str),
        st.builds("*/{}".format, st.integers(1, last)),
        st.builds("{}/{}".format, value, st.integers(1, last)),
        st.builds(lambda a, b, n: f"{min(a, b)}-{max(a, b)}/{n}", value, value, st.integers(1, last)),
    )
    return st.lists(term, min_size=1, max_size=3).map(",".join)


def _values(text: str, last: int) -> set[int]:
    found: set[int] = set()
    for term in text.split(","):
        values, _, step = term.partition("/")
        begin, dash, end = values.partition("-")
        first = 0 if begin == "*" else int(begin)
        to = int(end) if dash else last if begin == "*" or step else first
        found |= set(range(first, to + 1, int(step or 1)))
    return found


@given(st.sampled_from(CHANGING_DAYS), _fields(23), _fields(59), st.integers(0, 59))
def test_instants_are_those_that_a_clock_of_the_zone_shows(
    change: tuple[str, str], hours: str, minutes: str, second: int
) -> None:
    zone, middle = ZoneInfo(change[0]), parse_instant(f"{change[1]}T00:00:00Z")
    begin, end = middle - 36 * HOUR_MS, middle + 48 * HOUR_MS
    walked = _walk(_shown(change[0], begin - DAY_MS, end), _values(hours, 23), _values(minutes, 59))
    expected = [at + second * 1000 for at in walked if at > begin]
    timing = read_timing(f"{second} {minutes} {hours} * * ?", zone, 0)
    assert next_instants(timing, begin + second * 1000, len(expected)) == expected
    assert count_instants(timing, begin + second * 1000 + 1, end + second * 1000, 10_000) == len(expected)


def test_every_counts_from_its_anchor() -> None:
    assert after("@every 90m", "2026-01-01T00:00:00Z", count=2) == ["2026-01-01T01:30:00", "2026-01-01T03:00:00"]
    assert after("@every  90m", "2026-01-01T01:30:00Z") == ["2026-01-01T03:00:00"]
    assert after("@every 7m", "2025-12-31T23:50:00Z") == ["2025-12-31T23:53:00"]


def test_counting_is_bounded() -> None:
    timing = read_timing("@every 1m", UTC, 0)
    assert count_instants(timing, 60_000, 180_000, 10) == 3
    assert count_instants(timing, 60_000, 10**12, 10) == 10


ZONES = [None, BERLIN, ZoneInfo("America/Santiago"), ZoneInfo("Australia/Lord_Howe")]
CHANGES = [parse_instant(f"2026-{day}T01:00:00Z") for day in ("01-01", "03-29", "04-05", "09-06", "10-04", "10-25")]
EXPRESSIONS = (
    "0 * * * * *",
    "30 */5 * * * ?",
    "59 0,30 * * * ?",
    "0 0 8-18 ? * 1-5",
    "15 30,45 0-3 * * ?",
    "0 */20 0,23 1,15 * ?",
    "0 0 */6 ? 3,4,9,10 6,7",
    "0 0 3 * * ?",
    "0 30 2 ? * 7",
)


@pytest.mark.parametrize("zone", ZONES, ids=str)
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_a_count_is_that_of_the_instants(expression: str, zone: ZoneInfo | None) -> None:
    """Around changes of daylight saving time in one zone or another, and at the edges of days and minutes."""
    chance, timing = Random(f"{expression} {zone}"), read_timing(expression, zone or UTC, 0)
    for change in CHANGES:
        begin = change - chance.randrange(4 * 3_600_000)
        end = change + chance.randrange(4 * 3_600_000)
        among, at = [], timing.next_after(begin - 1)
        while at is not None and at <= end:
            among, at = [*among, at], timing.next_after(at)
        assert count_instants(timing, begin, end, 3_000) == len(among)
        if among:
            assert count_instants(timing, among[0], among[-1], 3_000) == len(among)
            assert count_instants(timing, among[0] + 1, among[-1] - 1, 3_000) == max(len(among) - 2, 0)
            assert count_instants(timing, begin, end, 1) == 1
        assert count_instants(timing, end, begin - 1, 10) == 0


@pytest.mark.parametrize("zone", ["America/Santiago", "Atlantic/Azores"])
def test_ticks_of_a_day_that_has_no_midnight_are_counted(zone: str) -> None:
    """On a Sunday the clock goes from 24:00 to 1:00: a search from the day before finds the tick of 0:00 there."""
    timing = read_timing("0 0,30 */2 ? * 7", ZoneInfo(zone), 0)
    for begin in (parse_instant(f"2026-{day}T12:00:00Z") for day in ("03-24", "09-01")):
        ticks = [at for at in next_instants(timing, begin, 30) if at < begin + 7 * 86_400_000]
        assert count_instants(timing, begin, begin + 7 * 86_400_000 - 1, 1_000) == len(ticks)


def test_a_thousand_ticks_are_counted_without_a_search_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """A minute's schedule that slept for a week, as many do when a server starts again."""
    timing, begin = read_timing("0 * * * * *", BERLIN, 0), parse_instant("2026-05-01T07:13:11Z")
    searches: list[object] = []
    monkeypatch.setattr(InZone, "next_after", lambda _, instant: searches.append(instant))
    assert count_instants(timing, begin, begin + 7 * 86_400_000, 1_000_000) == 7 * 24 * 60
    assert searches == []


class SingleInstant:
    """A timing without further instants after its only one."""

    def next_after(self, instant_ms: int) -> int | None:
        return 5 if instant_ms < 5 else None


def test_a_timing_may_end() -> None:
    assert next_instants(SingleInstant(), 0, 3) == [5]
    assert count_instants(SingleInstant(), 0, 10, 3) == 1


def test_the_last_year_has_no_next_one() -> None:
    assert read_timing("0 0 0 1 1 ?", UTC, 0).next_after(parse_instant("9999-06-01T00:00:00Z")) is None


def test_cron_gives_up_after_fifty_years() -> None:
    timing = read_timing("0 0 0 1 1 ?", UTC, 0)
    assert timing.next_after(parse_instant("2026-01-01T00:00:00Z")) == parse_instant("2027-01-01T00:00:00Z")
    assert read_cron("5 0 0 1 1 ?").second == 5
    assert datetime(2027, 1, 1, tzinfo=UTC)
