"""The clock: the time in a place, and arithmetic with dates."""

from __future__ import annotations

import re
import threading
from datetime import UTC, date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolturn.toolboxes import clock as box
from toolturn.toolboxes.clock import clock_toolbox, find_zone

from . import admits, call, outcome, processor_seconds, refusal

NOW = datetime(2026, 11, 30, 10, 5, 59, tzinfo=UTC)
TOOLS = clock_toolbox(now=lambda: NOW, local=ZoneInfo("Europe/Berlin"))


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("Asia/Tokyo", "19:05 on Monday 30 November 2026 (Asia/Tokyo)"),
        ("Europe/London", "10:05 on Monday 30 November 2026 (Europe/London)"),
        ("America/New_York", "05:05 on Monday 30 November 2026 (America/New_York)"),
        ("Pacific/Kiritimati", "00:05 on Tuesday 1 December 2026 (Pacific/Kiritimati)"),
        ("Pacific/Honolulu", "00:05 on Monday 30 November 2026 (Pacific/Honolulu)"),
        ("Asia/Kathmandu", "15:50 on Monday 30 November 2026 (Asia/Kathmandu)"),
        ("UTC", "10:05 on Monday 30 November 2026 (UTC)"),
        ("local", "11:05 on Monday 30 November 2026 (Europe/Berlin)"),
    ],
)
def test_the_time_has_its_weekday_its_date_and_its_zone(place: str, says: str) -> None:
    assert call(TOOLS, "current_time", timezone=place) == says


@pytest.mark.parametrize(
    ("name", "zone"),
    [
        ("Tokyo", "Asia/Tokyo"),
        ("tokyo", "Asia/Tokyo"),
        ("New York", "America/New_York"),
        ("new_york", "America/New_York"),
        ("  NEW   YORK ", "America/New_York"),
        ("New York City", "America/New_York"),
        ("america/new york", "America/New_York"),
        ("EUROPE/LONDON", "Europe/London"),
        ("London", "Europe/London"),
        ("Sydney", "Australia/Sydney"),
        ("San Francisco", "America/Los_Angeles"),
        ("Beijing", "Asia/Shanghai"),
        ("Mumbai", "Asia/Kolkata"),
        ("Buenos Aires", "America/Argentina/Buenos_Aires"),
        ("São Paulo", "America/Sao_Paulo"),
        ("Zürich", "Europe/Zurich"),
        ("Port-au-Prince", "America/Port-au-Prince"),
        ("port au prince", "America/Port-au-Prince"),
        ("Istanbul", "Europe/Istanbul"),
        ("Washington, D.C.", "America/New_York"),
        ("Paris, France", "Europe/Paris"),
        ("Sydney, Australia", "Australia/Sydney"),
        ("Tokyo time", "Asia/Tokyo"),
        ("Japan", "Asia/Tokyo"),
        ("India", "Asia/Kolkata"),
        ("Singapore", "Asia/Singapore"),
        ("UK", "Europe/London"),
        ("EST", "America/New_York"),
        ("PST", "America/Los_Angeles"),
        ("Pacific Time", "America/Los_Angeles"),
        ("CET", "Europe/Berlin"),
        ("JST", "Asia/Tokyo"),
        ("IST", "Asia/Kolkata"),
        ("utc", "UTC"),
        ("Z", "UTC"),
        ("GMT", "UTC"),
        ("Etc/UTC", "UTC"),
        ("US/Pacific", "US/Pacific"),
        ("Etc/GMT+5", "Etc/GMT+5"),
        ("EST5EDT", "EST5EDT"),
    ],
)
def test_a_zone_goes_by_many_names(name: str, zone: str) -> None:
    assert find_zone(name)[1] == zone


def test_every_zone_of_the_database_goes_by_its_own_name_in_any_case() -> None:
    for name in available_timezones() - {"Factory", "localtime"}:
        found = {find_zone(name)[0].utcoffset(NOW), find_zone(name.lower())[0].utcoffset(NOW)}
        if "/" in name:
            assert found == {ZoneInfo(name).utcoffset(NOW)}, name


@pytest.mark.parametrize(
    ("name", "zone"), [("America/San_Francisco", "America/Los_Angeles"), ("Asia/Beijing", "Asia/Shanghai")]
)
def test_an_invented_name_is_understood_where_it_can_only_mean_one_zone(name: str, zone: str) -> None:
    assert find_zone(name)[1] == zone


@pytest.mark.parametrize("name", ["Australia/London", "Europe/Cairo", "Paris, Texas", "Berlin/Europe"])
def test_a_name_whose_halves_disagree_is_refused(name: str) -> None:
    assert "is not known" in refusal(find_zone, name)


@pytest.mark.parametrize(
    ("name", "zone", "hours"),
    [
        ("UTC+2", "UTC+02:00", 2.0),
        ("GMT-5", "UTC-05:00", -5.0),
        ("+05:30", "UTC+05:30", 5.5),
        ("utc −0330", "UTC-03:30", -3.5),
    ],
)
def test_an_offset_is_a_zone(name: str, zone: str, hours: float) -> None:
    assert find_zone(name) == (timezone(timedelta(hours=hours)), zone)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Atlantis", 'timezone: "Atlantis" is not known; use a name such as "Europe/London" or "Tokyo"'),
        ("Londn", "did you mean Europe/London?"),
        ("Europe/Berln", "did you mean Europe/Berlin"),
        ("", "is not known"),
        ("UTC+99", "is not known"),
        ("UTC+05:75", "is not known"),
        ("Factory", "is not known"),
        ("../../etc/passwd", "is not known"),
        ("/etc/localtime", "is not known"),
        ("\0", "is not known"),
        ("x" * 100_000, "too long"),
    ],
)
def test_an_unknown_zone_is_refused_with_what_to_write_instead(name: str, says: str) -> None:
    with processor_seconds(1):
        assert says in refusal(find_zone, name)


def test_the_machine_has_a_local_zone_and_a_clock_too() -> None:
    said = call(clock_toolbox(), "current_time", timezone="local")
    assert re.fullmatch(r"[0-9]{2}:[0-9]{2} on [A-Z][a-z]+day [0-9]{1,2} [A-Z][a-z]+ [0-9]{4} \(.+\)", said)
    here = clock_toolbox(now=lambda: NOW)
    assert call(here, "current_time", timezone="here").startswith(f"{NOW.astimezone():%H:%M} on ")


@pytest.mark.parametrize(
    ("start", "end", "says"),
    [
        ("2024-01-01", "2024-03-01", "60 days from 2024-01-01 to 2024-03-01"),
        ("2025-06-10", "2025-12-25", "198 days from 2025-06-10 to 2025-12-25"),
        ("2025-06-10", "2025-06-11", "1 day from 2025-06-10 to 2025-06-11"),
        ("2025-06-10", "2025-06-10", "0 days from 2025-06-10 to 2025-06-10"),
        ("2024-03-01", "2024-01-01", "60 days back, from 2024-03-01 to 2024-01-01"),
        ("today", "2026-12-25", "25 days from 2026-11-30 to 2026-12-25"),
        ("Yesterday", " tomorrow ", "2 days from 2026-11-29 to 2026-12-01"),
        ("0001-01-01", "9999-12-31", "3652058 days from 0001-01-01 to 9999-12-31"),
        ("2024-1-5", "2024/01/06", "1 day from 2024-01-05 to 2024-01-06"),
        ("2024-01-05T12:00:00Z", "2024.01.06", "1 day from 2024-01-05 to 2024-01-06"),
    ],
)
def test_days_between_two_dates(start: str, end: str, says: str) -> None:
    assert call(TOOLS, "days_between", start_date=start, end_date=end) == says


def test_the_weekday_of_a_date() -> None:
    assert call(TOOLS, "weekday", date="2000-01-01") == "2000-01-01 is a Saturday"
    assert call(TOOLS, "weekday", date="today") == "2026-11-30 is a Monday"


@pytest.mark.parametrize(
    ("start", "days", "says"),
    [
        ("2026-11-30", 90, "2027-02-28 (Sunday)"),
        ("2026-03-15", -30, "2026-02-13 (Friday)"),
        ("2024-02-28", 1, "2024-02-29 (Thursday)"),
        ("today", 0, "2026-11-30 (Monday)"),
    ],
)
def test_the_date_some_days_away(start: str, days: int, says: str) -> None:
    assert call(TOOLS, "add_days", date=start, days=days) == says


@pytest.mark.parametrize("days", [10**7, -(10**7), 10**30, -(10**30)])
def test_a_date_outside_of_the_calendar_is_refused(days: int) -> None:
    text = refusal(call, TOOLS, "add_days", date="2026-11-30", days=days)
    assert text == "days: the date must stay in the years 1 to 9999; use fewer days, such as 90"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("2025-02-30", 'date: the day "2025-02-30" does not exist'),
        ("2025-13-01", "does not exist"),
        ("0000-01-01", "does not exist"),
        ("30.11.2026", 'date: "30.11.2026" is not a date; write YYYY-MM-DD, for example 2026-11-30'),
        ("next Friday", "write YYYY-MM-DD"),
        ("", "write YYYY-MM-DD"),
        ("٢٠٢٦-١١-٣٠", "write YYYY-MM-DD"),
        ("2026-11-30" * 10_000, "write YYYY-MM-DD"),
    ],
)
def test_a_date_that_is_none_is_refused_with_how_to_write_one(text: str, says: str) -> None:
    assert says in refusal(call, TOOLS, "weekday", date=text)


def test_the_refused_field_is_named() -> None:
    good, bad = "2026-01-01", "2026-02-30"
    assert refusal(call, TOOLS, "days_between", start_date=bad, end_date=good).startswith("start_date: ")
    assert refusal(call, TOOLS, "days_between", start_date=good, end_date=bad).startswith("end_date: ")
    assert refusal(call, TOOLS, "add_days", date=bad, days=1).startswith("date: ")


def test_today_is_the_day_of_the_local_zone() -> None:
    late = datetime(2026, 11, 30, 23, 30, tzinfo=UTC)
    ahead = clock_toolbox(now=lambda: late, local=ZoneInfo("Asia/Tokyo"))
    assert call(ahead, "weekday", date="today") == "2026-12-01 is a Tuesday"


def test_each_call_looks_at_the_clock() -> None:
    moments = iter([NOW, NOW + timedelta(minutes=7)])
    tools = clock_toolbox(now=lambda: next(moments))
    assert call(tools, "current_time", timezone="UTC").startswith("10:05")
    assert call(tools, "current_time", timezone="UTC").startswith("10:12")


@given(st.dates(), st.dates())
def test_adding_the_days_between_two_dates_leads_from_one_to_the_other(first: date, last: date) -> None:
    said = call(TOOLS, "days_between", start_date=str(first), end_date=str(last))
    count = int(said.split()[0]) * (-1 if "back" in said else 1)
    assert call(TOOLS, "add_days", date=str(first), days=count).startswith(str(last))


@given(st.one_of(st.text(max_size=80), st.text("aeinostrUTCGM+-/_ ,:0123456789", max_size=80)))
def test_whatever_is_written_a_time_or_a_refusal_comes_out(name: str) -> None:
    with processor_seconds(1):
        found, refused = outcome(find_zone, name)
    if refused:
        assert refused.startswith("timezone: ")
    else:
        zone, shown = found
        assert NOW.astimezone(zone).tzinfo is zone
        assert shown


def test_the_schemas_admit_what_a_model_shall_write() -> None:
    dates = ["2026-11-30", "today"]
    for tool, field in (
        ("days_between", "start_date"),
        ("days_between", "end_date"),
        ("weekday", "date"),
        ("add_days", "date"),
    ):
        assert all(admits(TOOLS, tool, field, dates))
        assert not any(admits(TOOLS, tool, field, ["", "30.11.2026", "2026-11-30 ", "todays", "November 30"]))
    zones = ["UTC", "local", "New York", *(name for name in available_timezones() if not re.search("[0-9]", name))]
    assert all(admits(TOOLS, "current_time", "timezone", zones))
    assert not any(admits(TOOLS, "current_time", "timezone", ["", "{", "2", "x" * 41]))


def test_the_tools_may_be_repeated_and_run_beside_others() -> None:
    assert TOOLS.names == ("current_time", "add_days", "days_between", "weekday")
    assert all(traits.effect == "none" and traits.parallel for traits in TOOLS.traits.values())


def test_threads_may_ask_for_the_first_zone_at_the_same_time() -> None:
    box._all_zones.cache_clear()
    found: list[str] = []
    start = threading.Barrier(8)

    def work() -> None:
        start.wait()
        found.append(find_zone("Tokyo")[1])

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["Asia/Tokyo"] * 8
    assert box._all_zones.cache_info().misses == 1


def test_without_a_database_of_zones_one_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(box, "_zones", dict)
    assert "pip install 'toolturn[toolboxes]'" in refusal(find_zone, "Tokyo")
    assert find_zone("UTC")[1] == "UTC"
