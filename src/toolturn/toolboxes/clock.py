"""The toolbox ``clock``: the time in a place, and arithmetic with dates."""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from difflib import get_close_matches
from functools import cache
from typing import Annotated, TypeAlias
from zoneinfo import ZoneInfo, available_timezones

from pydantic import Field

from ..errors import ToolError
from ..tools import ToolSet, tool

# Not strftime's names: those follow the locale of the process.
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)

_MAX_NAME = 60
_REGIONS = {
    "Africa",
    "America",
    "Antarctica",
    "Arctic",
    "Asia",
    "Atlantic",
    "Australia",
    "Europe",
    "Indian",
    "Pacific",
}
_LOCAL = {"local", "here", "local time", "localtime"}
_UTC = {"utc", "z", "zulu", "gmt", "utc+0", "etc/utc", "universal", "coordinated universal time"}

# What people call a zone, where the database has no such name or means another thing by it: its EST is a zone
# without summer time.
_PLACES = {
    "America/New_York": "est, edt, et, eastern, eastern time, us eastern, nyc, new york city, manhattan, brooklyn, "
    "washington, washington dc, washington d.c., boston, philadelphia, miami, atlanta, orlando, charlotte, pittsburgh, "
    "baltimore, cleveland, florida",
    "America/Chicago": "cst, cdt, ct, central, central time, us central, houston, dallas, austin, san antonio, "
    "new orleans, minneapolis, st louis, st. louis, saint louis, milwaukee, kansas city, nashville, memphis, texas",
    "America/Denver": "mst, mdt, mt, mountain, mountain time, us mountain, salt lake city, albuquerque, colorado",
    "America/Los_Angeles": "pst, pdt, pt, pacific, pacific time, us pacific, la, l.a., san francisco, sf, seattle, "
    "san diego, san jose, portland, las vegas, sacramento, oakland, hollywood, silicon valley, california",
    "America/Phoenix": "arizona, tucson",
    "America/Anchorage": "akst, akdt, alaska",
    "Pacific/Honolulu": "hst, hawaii",
    "America/Toronto": "ottawa, montreal, quebec",
    "America/Edmonton": "calgary, banff",
    "America/Halifax": "ast, adt, atlantic time",
    "America/St_Johns": "nst, ndt, newfoundland",
    "America/Sao_Paulo": "brt, brasilia, rio, rio de janeiro, brazil, sao paulo brazil",
    "America/Argentina/Buenos_Aires": "art, argentina",
    "America/Bogota": "colombia",
    "America/Lima": "peru",
    "America/Santiago": "chile",
    "America/Caracas": "venezuela",
    "America/Mexico_City": "mexico",
    "America/Havana": "cuba",
    "Europe/London": "bst, uk, u.k., united kingdom, great britain, britain, england, scotland, wales, edinburgh, "
    "glasgow, manchester, birmingham, liverpool, cardiff, oxford, cambridge, gb",
    "Europe/Dublin": "ireland",
    "Europe/Lisbon": "wet, west, portugal, porto",
    "Europe/Madrid": "spain, barcelona, seville, valencia",
    "Europe/Paris": "france, lyon, marseille, nice, toulouse, bordeaux",
    "Europe/Brussels": "belgium, antwerp, bruges",
    "Europe/Amsterdam": "netherlands, the netherlands, holland, rotterdam, the hague, utrecht",
    "Europe/Berlin": "cet, cest, mez, mesz, central european time, germany, munich, hamburg, cologne, frankfurt, "
    "stuttgart, dusseldorf, leipzig, dresden, koln, munchen",
    "Europe/Zurich": "switzerland, geneva, basel, bern",
    "Europe/Vienna": "austria, salzburg",
    "Europe/Rome": "italy, milan, naples, venice, florence, turin",
    "Europe/Copenhagen": "denmark",
    "Europe/Oslo": "norway, bergen",
    "Europe/Stockholm": "sweden, gothenburg",
    "Europe/Helsinki": "finland",
    "Europe/Warsaw": "poland, krakow",
    "Europe/Prague": "czech republic, czechia",
    "Europe/Budapest": "hungary",
    "Europe/Athens": "eet, eest, greece",
    "Europe/Bucharest": "romania",
    "Europe/Sofia": "bulgaria",
    "Europe/Belgrade": "serbia",
    "Europe/Zagreb": "croatia",
    "Europe/Kyiv": "ukraine, kyiv, kiev",
    "Europe/Moscow": "msk, russia, saint petersburg, st petersburg, st. petersburg",
    "Europe/Istanbul": "turkey, turkiye, istanbul, ankara",
    "Atlantic/Reykjavik": "iceland",
    "Africa/Cairo": "egypt",
    "Africa/Lagos": "nigeria, abuja",
    "Africa/Nairobi": "eat, kenya",
    "Africa/Johannesburg": "sast, south africa, cape town, pretoria, durban",
    "Africa/Casablanca": "morocco, marrakesh",
    "Africa/Accra": "ghana",
    "Africa/Addis_Ababa": "ethiopia",
    "Asia/Jerusalem": "israel, jerusalem",
    "Asia/Dubai": "gst, uae, united arab emirates, abu dhabi",
    "Asia/Riyadh": "saudi arabia, mecca, jeddah",
    "Asia/Qatar": "doha",
    "Asia/Tehran": "iran",
    "Asia/Karachi": "pkt, pakistan, lahore, islamabad",
    "Asia/Kolkata": "ist, india, indian standard time, mumbai, bombay, delhi, new delhi, bangalore, bengaluru, "
    "chennai, madras, hyderabad, pune, ahmedabad, calcutta",
    "Asia/Kathmandu": "nepal",
    "Asia/Dhaka": "bangladesh",
    "Asia/Colombo": "sri lanka",
    "Asia/Bangkok": "ict, thailand",
    "Asia/Ho_Chi_Minh": "vietnam, saigon, hanoi",
    "Asia/Jakarta": "wib, indonesia",
    "Asia/Makassar": "bali, denpasar",
    "Asia/Kuala_Lumpur": "myt, malaysia",
    "Asia/Singapore": "sgt, singapore",
    "Asia/Manila": "pht, philippines",
    "Asia/Shanghai": "china, china standard time, beijing, peking, shenzhen, guangzhou, chengdu, wuhan, prc",
    "Asia/Hong_Kong": "hkt, hongkong",
    "Asia/Taipei": "taiwan",
    "Asia/Seoul": "kst, korea, south korea, busan",
    "Asia/Tokyo": "jst, japan, osaka, kyoto, yokohama, nagoya, sapporo",
    "Australia/Sydney": "aest, aedt, canberra, new south wales",
    "Australia/Melbourne": "victoria",
    "Australia/Brisbane": "queensland, gold coast",
    "Australia/Adelaide": "acst, acdt, south australia",
    "Australia/Perth": "awst, western australia",
    "America/Jamaica": "jamaica",
    "Pacific/Auckland": "nzst, nzdt, nz, new zealand, wellington, christchurch",
}

Clock: TypeAlias = Callable[[], datetime]
"""Gives the present moment with its zone."""

# A model is shown what a grammar can enforce; what is wrong is told by the tools, in words that help it.
_DATE_PATTERN = r"^([0-9]{4}-[0-9]{2}-[0-9]{2}|today)$"
_Date: TypeAlias = Annotated[str, Field(json_schema_extra={"pattern": _DATE_PATTERN})]
_Zone: TypeAlias = Annotated[str, Field(json_schema_extra={"pattern": "^[A-Za-z][A-Za-z_/+ -]{1,39}$"})]


def _utc_now() -> datetime:
    return datetime.now(UTC)


def clock_toolbox(*, now: Clock | None = None, local: tzinfo | None = None) -> ToolSet:
    """Return the tools ``current_time``, ``add_days``, ``days_between`` and ``weekday``.

    Args:
        now: Gives the present moment, with a zone; the machine's clock where None.
        local: The zone of "local" and of "today"; the machine's where None.
    """
    clock = now or _utc_now

    def here() -> datetime:
        return clock().astimezone(local)

    @tool(effect="none", parallel=True)
    def current_time(timezone: _Zone) -> str:
        """Get the current time and date in a city or timezone."""
        # No example: a small model answers Australia/London when London is one.
        if _key(timezone) in _LOCAL:
            moment = here()
            return _moment_text(moment, str(moment.tzname()) if local is None else str(local))
        zone, name = find_zone(timezone)
        return _moment_text(clock().astimezone(zone), name)

    @tool(effect="none", parallel=True)
    def days_between(start_date: _Date, end_date: _Date) -> str:
        """Count the days between two dates (YYYY-MM-DD).

        Args:
            start_date: First date, YYYY-MM-DD or today.
            end_date: Last date, YYYY-MM-DD or today.
        """
        first = _date("start_date", start_date, here)
        last = _date("end_date", end_date, here)
        days = (last - first).days
        counted = f"{abs(days)} {'day' if abs(days) == 1 else 'days'}"
        if days < 0:
            return f"{counted} back, from {first} to {last}"
        return f"{counted} from {first} to {last}"

    @tool(effect="none", parallel=True)
    def weekday(date: _Date) -> str:
        """Get the day of the week of a date (YYYY-MM-DD).

        Args:
            date: YYYY-MM-DD or today.
        """
        day = _date("date", date, here)
        return f"{day} is a {_DAYS[day.weekday()]}"

    @tool(effect="none", parallel=True)
    def add_days(date: _Date, days: int) -> str:
        """Get the date some days after or before a date (YYYY-MM-DD).

        Args:
            date: YYYY-MM-DD or today.
            days: Days to add, such as 90; negative to go back, such as -90.
        """
        day = _date("date", date, here)
        try:
            then = day + timedelta(days=days)
        except OverflowError:
            raise ToolError("days: the date must stay in the years 1 to 9999; use fewer days, such as 90") from None
        return f"{then} ({_DAYS[then.weekday()]})"

    return ToolSet([current_time, add_days, days_between, weekday])


def _moment_text(moment: datetime, zone: str) -> str:
    day = f"{_DAYS[moment.weekday()]} {moment.day} {_MONTHS[moment.month - 1]} {moment.year}"
    return f"{moment.hour:02}:{moment.minute:02} on {day} ({zone})"


_DATE = re.compile(r"([0-9]{4})[-/.]([0-9]{1,2})[-/.]([0-9]{1,2})(?:[T ][0-9:.Z+]*)?")
_NEAR = {"today": 0, "now": 0, "tomorrow": 1, "yesterday": -1}


def _date(field: str, text: str, here: Callable[[], datetime]) -> date:
    word = text[:_MAX_NAME].strip().lower()
    if word in _NEAR:
        return here().date() + timedelta(days=_NEAR[word])
    found = _DATE.fullmatch(word.upper())
    if found is None:
        raise ToolError(f"{field}: {_quoted(text)} is not a date; write YYYY-MM-DD, for example 2026-11-30")
    try:
        return date(int(found[1]), int(found[2]), int(found[3]))
    except ValueError:
        raise ToolError(f"{field}: the day {_quoted(text)} does not exist; use one such as 2026-11-30") from None


def _quoted(text: str) -> str:
    return f'"{text}"' if len(text) <= 40 else f'"{text[:39]}…"'


# ---- zones by the names people give them

_OFFSET = re.compile(r"(?:utc|gmt)?\s*([+-])\s*([0-9]{1,2})(?::?([0-9]{2}))?")


def find_zone(name: str) -> tuple[tzinfo, str]:
    """Return the time zone that a name stands for, and the name it goes by.

    Args:
        name: An IANA name in any case, a large city, a country with one zone, an abbreviation, or an offset such as
            ``UTC+2``.

    Raises:
        ToolError: No zone goes by the name, or the machine has no database of zones.
    """
    if len(name) > _MAX_NAME:
        raise ToolError('timezone: the name is too long; use a name such as "Europe/London"')
    key = _key(name)
    if key in _UTC:
        return UTC, "UTC"
    if found := _OFFSET.fullmatch(key):
        minutes = int(found[2]) * 60 + int(found[3] or 0)
        if minutes <= 14 * 60 and int(found[3] or 0) < 60:
            shown = f"UTC{found[1]}{minutes // 60:02}:{minutes % 60:02}"
            return timezone(timedelta(minutes=minutes if found[1] == "+" else -minutes)), shown
    zones = _zones()
    if zone := zones.get(key) or _reading(key, zones):
        return ZoneInfo(zone), zone
    if len(zones) < len(_PLACES):
        raise ToolError("time zones are not installed: pip install 'toolturn[toolboxes]'")
    near = sorted({zones[each] for each in get_close_matches(key.rpartition("/")[2], zones, 3, 0.82)})
    hint = f"did you mean {' or '.join(near)}?" if near else 'use a name such as "Europe/London" or "Tokyo"'
    raise ToolError(f"timezone: {_quoted(name)} is not known; {hint}")


def _reading(key: str, zones: dict[str, str]) -> str | None:
    """The zone of a name that is none, where it can only mean one.

    Small models write ``Paris, France`` and invent ``America/San_Francisco``; both are clear enough. But
    ``Paris, Texas`` and ``Australia/London`` are not, as either half of them may be what was meant.
    """
    if "," in key:
        named = {zones[part] for part in map(str.strip, key.split(",")) if part in zones}
        return named.pop() if len(named) == 1 else None
    region, slash, city = key.partition("/")
    if slash:
        zone = zones.get(city.rpartition("/")[2].strip())
        agrees = zone is not None and (region.capitalize() not in _REGIONS or zone.lower().startswith(f"{region}/"))
        return zone if agrees else None
    for ending in (" timezone", " time zone", " time", " city"):
        if zone := zones.get(key.removesuffix(ending)):
            return zone
    return zones.get(key.replace("-", " "))


def _key(name: str) -> str:
    bare = "".join(c for c in unicodedata.normalize("NFKD", name) if not unicodedata.combining(c))
    return " ".join(bare.casefold().replace("_", " ").replace("−", "-").split())


_zones_lock = threading.Lock()


def _zones() -> dict[str, str]:
    # cache alone would let two threads walk the folders of the database at once.
    with _zones_lock:
        return _all_zones()


@cache
def _all_zones() -> dict[str, str]:
    names = sorted(available_timezones() - {"Factory", "localtime"})
    made: dict[str, str] = {}
    for name in names:
        region, _, rest = name.partition("/")
        if region in _REGIONS and rest not in ("North", "South", "West", "East"):
            # Argentina/Buenos_Aires sorts before the older Buenos_Aires: the first name of a city is the current one.
            city = _key(rest.rpartition("/")[2])
            made.setdefault(city, name)
            made.setdefault(city.replace("-", " "), name)
    # Full names last, and above all what people mean.
    made |= {_key(name): name for name in names}
    for zone, called in _PLACES.items():
        if zone in names:
            made |= dict.fromkeys(called.split(", "), zone)
    return made
