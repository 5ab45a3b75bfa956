"""A stream of text into sentences: each is handed on with the character that proves its end.

What proves an end:

- a line break after a stop; an empty line; a line break before anything but a lower-case letter, so that list items,
  headings and table rows stand alone and wrapped lines do not;
- after ``.``, ``!``, ``?`` or ``…`` and blanks: the next character, unless it is a lower-case letter or punctuation
  that goes on. A stop without a blank behind it is part of an address, a number, a version or a file name;
- after a stop of its own, such as ``。``, ``।`` or ``؟``: the next character that is neither a stop nor closes a quote;
- of a block of code: the line that closes it.

A word before ``.`` may be an abbreviation: :mod:`toolturn.abbreviations` has lists, and shapes tell of others. Only
where it is one that may end a sentence too (``U.S.``, ``Inc.``) the next word has to be whole.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from .abbreviations import Abbreviations, abbreviations, words_of

DEFAULT_LONGEST: Final = 240

# Stops that need a blank behind them, and those that need none.
_HARD = "。！？｡．।॥؟۔።፧፨։။၊។៕༎᙮߹᠃᠉꓿"
_CLOSERS = "\"'”’»›)]}*_~`」』）】〉》〕〗｝］＂\u200f\u200e"
_GOES_ON = ",;:)]}»”’/，、；：،؛"
_STOP = re.compile(rf"[.!?…\u037e;{_HARD}\n]")
_RUN = re.compile(rf"[.!?…\u037e{_HARD}]+")
# “ and « close a quote in some languages and open one in others: behind a stop, where the script has blanks, they close
_CLOSING = re.compile(
    rf"(?:[“‘«‹{re.escape(_CLOSERS)}]|\[\d{{1,3}}\]|[\U0001f300-\U0001faff\u2600-\u27bf\ufe0f\u200d])*"
)
_CLOSING_HARD = re.compile(rf"[{re.escape(_CLOSERS)}]*")
_BLANKS = re.compile(r"[^\S\n]*")
_FENCE = re.compile(r"[^\S\n]*(`{3,}|~{3,})")
_HALF_A_FENCE = re.compile(r"[^\S\n]*(?:`{0,2}|~{0,2})\Z")
_SINGLE_LINE = re.compile(r"[ \t>]*(?:#{1,6}[ \t]|[-*+•–][ \t]|\d{1,3}[.)][ \t]|\|)")
_MARKER = re.compile(r"\d{1,3}|[ivxlc]{1,5}|[a-z]", re.IGNORECASE)
_CLAUSE = re.compile(r"[,;:–—،؛](?=\s)|[，、；：]")
_BREAK = re.compile(rf"\s|[，、；：{_HARD}]")
_OPENERS = "\"'“”„‘’‚«»‹›([{*_~`¿¡#>-–—「『（【"
_INITIALS = re.compile(r"\w(?:\.\w)+", re.UNICODE)
_ROMAN = re.compile(r"[IVXLC]+")
_VOWELS = frozenset("aeiouyæœøаеёиоуыэюяіїєαεηιουω")
_INTERJECTIONS = words_of("hm hmm hmmm mm mmm mhm shh sh pst psst brr tsk grr pff pfft zzz nth rhythm myth")
_WITHOUT_VOWELS = frozenset(("cs", "sk", "hr", "sr", "bs", "sl", "mk"))
_ORDINALS = frozenset(("de", "lb", None))
_BEFORE_ORDINALS = words_of(
    "am der die das dem den des im zum zur vom bis seit ab ein eine einen einem eines unser ihr sein jeder jede jedes "
    "in und oder montag dienstag mittwoch donnerstag freitag samstag sonntag"
)
_UNITS = words_of("h m g l s t km kg cm mm ml cl dl hl kb mb gb tb hz kw kwh ft lb lbs oz mi mph км кг м л с ч")
_WAIT: Final = -1
_NO: Final = -2


class SentenceSplitter:
    """Cuts a stream of text into sentences, blanks and all: the pieces joined are the text.

    The pieces do not depend on how the text was cut on its way in. Blanks behind a sentence belong to it, as far as
    they had come when its end was proven; a block of code is one piece.

    >>> splitter = SentenceSplitter("en")
    >>> splitter.feed("It is 21.5 degrees, Dr. Wh")
    []
    >>> splitter.feed("o. Take a c")
    ['It is 21.5 degrees, Dr. Who. ']
    >>> splitter.flush()
    ['Take a c']

    Args:
        language: A BCP 47 tag such as ``de-AT``; where it is None, abbreviations of many languages are known.
        longest: Characters after which a sentence without an end is cut, at a clause or a blank, so that speech can
            begin; blocks of code are kept whole. At least 16.

    Raises:
        ValueError: ``longest`` is below 16.
    """

    __slots__ = ("_at", "_code", "_fence", "_language", "_line_start", "_longest", "_text", "_words")

    def __init__(self, language: str | None = None, *, longest: int = DEFAULT_LONGEST) -> None:
        if longest < 16:
            raise ValueError("longest must be at least 16")
        self._language = re.split("[-_]", language)[0].lower() if language else None
        self._words: Abbreviations = abbreviations(self._language)
        self._longest = longest
        self._text = ""  # what has not been handed on; of a block of code only the last, incomplete line
        self._at = 0  # up to here no end was found
        self._line_start = True  # whether the text begins at the start of a line
        self._fence = ""
        self._code: list[str] = []

    @property
    def pending(self) -> str:
        """The text that has not been handed on."""
        return "".join(self._code) + self._text

    def feed(self, text: str) -> list[str]:
        """Take a piece of the text and return the sentences whose end it proves.

        Args:
            text: The piece, cut anywhere.
        """
        if not text:
            return []
        self._text += text
        return self._cut(False)

    def flush(self) -> list[str]:
        """Return what is left: the text has ended. The splitter may then be used for another one."""
        pieces = self._cut(True)
        if rest := self.pending:
            pieces.append(rest)
        self._text, self._at, self._line_start, self._fence = "", 0, True, ""
        self._code.clear()
        return pieces

    def settle(self) -> list[str]:
        """Return what is left if it looks like whole sentences, though its end is not proven yet.

        For a text that pauses. Nothing is returned when the stop may be that of an abbreviation or within a number.
        """
        piece = self._text
        if not piece or not self.settled:
            return []
        self._text, self._at, self._line_start = "", 0, piece.endswith("\n")
        return [piece]

    @property
    def settled(self) -> bool:
        """Whether what is left looks like whole sentences, or there is nothing left."""
        text = self._text
        if self._fence or not text:
            return not self._fence
        at = self._at
        run = _RUN.match(text, at)
        if run is None or len(text) > self._longest:
            return False
        closed = _end(_CLOSING, text, run.end())
        if _end(_BLANKS, text, closed) < len(text) or (text[at] == "." and text[at - 1 : at].isdigit()):
            return False
        # as if a word that rarely begins a sentence came next
        return self._judge(text + " Xq ", at, run.end(), True) > 0

    # --- the text ----------------------------------------------------------------------

    def _cut(self, final: bool) -> list[str]:
        """Take all sentences off the text whose ends are proven."""
        pieces: list[str] = []
        text, begin, reach = self._text, 0, 2 * self._longest
        while begin < len(text):
            if self._fence:
                end = self._read_code(text, begin, pieces)
            else:
                # what is decided depends on this window alone, however much has come: so it does not on the cuts
                window = text[begin : begin + reach]
                known = final or len(window) == reach
                if (
                    not window[: self._at].strip()
                    and (code := self._look_for_code(text, begin, window, known)) is not None
                ):
                    end = code
                elif end := self._find_end(window, known, final):
                    end += begin
                    pieces.append(text[begin:end])
            if not end:
                break
            begin, self._at, self._line_start = end, 0, text[end - 1] == "\n"
        self._text = text[begin:]
        return pieces

    def _find_end(self, window: str, known: bool, final: bool) -> int:
        """Return where the first sentence ends, or 0 when that can not be said yet."""
        longest = self._longest
        at = self._at
        while True:
            found = _STOP.search(window, at, longest)
            if found is None:
                self._at = min(len(window), longest)
                return self._cut_long(window) if len(window) > longest else 0
            at = found.start()
            after = at + 1
            if window[at] == "\n":
                end = self._judge_line(window, at, known)
            elif run := _RUN.match(window, at):
                after = run.end()
                end = _WAIT if after == len(window) and not known else self._judge(window, at, after, known)
            else:  # a semicolon, which is the question mark of Greek
                greek = at > 0 and "\u0370" <= window[at - 1] <= "\u03ff" and window[after : after + 1].isspace()
                end = after + 1 if greek else _WAIT if after == len(window) and not known else _NO
            if end > 0:
                return end
            if end == _WAIT:
                self._at = at
                return 0
            at = after

    def _cut_long(self, window: str) -> int:
        """Return where a sentence that is too long is cut, or 0 when no place for it has come."""
        longest = self._longest
        for found in reversed(list(_CLAUSE.finditer(window, longest // 3, longest))):
            return _end(_BLANKS, window, found.end())
        for blank in range(longest - 1, 0, -1):
            if window[blank].isspace():
                if not window[:blank].isspace():
                    return blank + 1
                break
        if later := _BREAK.search(window, longest):
            return later.end()
        if len(window) < 2 * longest:
            return 0
        end = len(window) - 1
        while end > longest and (unicodedata.combining(window[end]) or window[end] in "\u200d\ufe0f"):
            end -= 1  # a letter keeps its accents
        return end

    # --- lines and code ----------------------------------------------------------------

    def _judge_line(self, text: str, at: int, known: bool) -> int:
        """Judge a line break that no stop stands before."""
        line_start = text.rfind("\n", 0, at) + 1
        line = text[line_start:at]
        if not text[:at].strip():
            return _NO  # blanks before the sentence
        if not line.strip():
            return at + 1
        if (line_start or self._line_start) and _SINGLE_LINE.match(line):
            return at + 1
        after = _end(_BLANKS, text, at + 1)
        if after == len(text):
            return at + 1 if known else _WAIT
        if not _is_lower(text[after]):
            return at + 1
        if after + 1 == len(text):
            return _NO if known else _WAIT
        return at + 1 if text[after + 1] in ".)" else _NO  # a list by letters

    def _look_for_code(self, text: str, begin: int, window: str, known: bool) -> int | None:
        """Look whether a block of code begins here: None when not, 0 when that can not be said yet."""
        blanks = len(window) - len(window.lstrip())
        line = window.rfind("\n", 0, blanks) + 1
        if not (line or self._line_start):
            return None
        found = _FENCE.match(window, line)
        if found is None:
            return 0 if not known and _HALF_A_FENCE.match(window, line) else None
        mark = found.group(1)
        after = begin + found.end()
        end = text.find("\n", after) + 1
        if mark[0] == "`" and "`" in text[after : end or len(text)]:
            return None  # a piece of code within a line
        if end:
            self._fence = mark
            self._code.append(text[begin:end])
        return end

    def _read_code(self, text: str, begin: int, pieces: list[str]) -> int:
        """Take one line of a block of code; 0 when it has not all come."""
        end = text.find("\n", begin) + 1
        if end:
            line = text[begin:end]
            self._code.append(line)
            bare, mark = line.strip(), self._fence
            if len(bare) >= len(mark) and not bare.strip(mark[0]):
                pieces.append("".join(self._code))
                self._code.clear()
                self._fence = ""
        return end

    # --- stops -------------------------------------------------------------------------

    def _judge(self, text: str, at: int, after: int, known: bool) -> int:
        """Return where the sentence with this stop ends, or that it does not end there, or that more has to come."""
        size = len(text)
        hard = text[after - 1] in _HARD
        closed = _end(_CLOSING_HARD if hard else _CLOSING, text, after)
        if closed == size:
            return size if known else _WAIT
        if text.count("`", 0, closed) % 2 or text[text.rfind("\n", 0, at) + 1 : at].lstrip().startswith("|"):
            return _NO  # within code, or the row of a table
        follows = text[closed]
        if hard:
            return self._judge_hard(text, at, after, closed)
        if follows == "\n":
            return closed + 1
        if not follows.isspace():
            if follows == "[" and closed + 4 > size and not known:
                return _WAIT  # perhaps the number of a footnote
            return _NO
        start = _end(_BLANKS, text, closed)
        if start == size:
            return size if known else _WAIT
        follows = text[start]
        if follows == "\n":
            return start + 1
        if follows in "»›" and text.count("«", 0, at) + text.count("‹", 0, at) > text.count("»", 0, at):
            # a quote whose end stands behind a blank
            closed = start + 1
            start = _end(_BLANKS, text, closed)
            if start == size:
                return size if known else _WAIT
            follows = text[start]
            if follows == "\n":
                return start + 1
            if _is_lower(follows):
                return _NO
            return start
        if _is_lower(follows) or (follows in _GOES_ON and follows not in "»”’"):
            return _NO
        if follows in "—–":  # dialogue: who says so may follow
            if start + 1 == size and not known:
                return _WAIT
            if start + 1 < size and _is_lower(text[start + 1]):
                return _NO
        if text[at:after] == "." and closed == after:
            return self._judge_word(text, at, start, known)
        return start

    def _judge_hard(self, text: str, at: int, after: int, closed: int) -> int:
        follows = text[closed]
        if text[at] == "．" and follows.isdigit():
            return _NO
        if follows in _GOES_ON or (closed > after and follows in "とっ"):
            return _NO
        if text[at] == "।" and self._is_listed(text, at):
            return _NO
        return closed + 1 if follows.isspace() else closed

    def _is_listed(self, text: str, at: int) -> bool:
        return _word_before(text, at) in self._words.never

    def _judge_word(self, text: str, at: int, start: int, known: bool) -> int:
        """Judge a single full stop, by the word before it and what follows."""
        raw = _token_before(text, at)
        begins_line = not text[: at - len(raw)].strip(" \t>") if self._line_start else False
        line = text.rfind("\n", 0, at) + 1
        if line:
            begins_line = not text[line : at - len(raw)].strip(" \t>")
        token = raw.lstrip(_OPENERS)
        if begins_line and _MARKER.fullmatch(token):
            return _NO  # the number of a list item
        if not token:
            return start
        words = self._words
        follows = text[start]
        if token[-1].isdigit():
            return _NO if self._is_ordinal(text, at, token, follows) else start
        word = token.casefold()
        tail = re.split("[’'(/]", word)[-1]  # l'av., (bzw.
        before = _token_before(text, at - len(raw) - 1)
        if before[-1:].isdigit() and tail in _UNITS:
            return start
        for form in (_joined(text, at - len(raw) - 1, before, tail), word, tail):
            if form in words.never:
                return _NO
            if form in words.number:
                if follows.isdigit():
                    return _NO
                if follows in "IVXLC" and form not in words.may and (roman := self._judge_roman(text, start, known)):
                    return roman
                if form not in words.may:
                    return start if len(form) > 1 else _NO
            if form in words.may:
                return start
            if form in words.acronym:
                return self._judge_next_word(text, start, known)
        if _INITIALS.fullmatch(tail):
            return self._judge_next_word(text, start, known)
        if len(tail) == 1:
            if tail == "i" and self._language in ("en", None) and token[-1] == "I":
                return self._judge_next_word(text, start, known)
            named = token in "xy" or (token.islower() and "\u00df" < tail < "\u0250")
            return start if named or not tail.isalpha() else _NO
        if _ROMAN.fullmatch(token) and self._language in ("de", "pl", "cs", "sk", "hu"):
            return _NO
        if tail.endswith("str") and follows.isdigit():
            return _NO  # a street and its number
        return _NO if self._lacks_a_vowel(before, token, tail) else start

    def _is_ordinal(self, text: str, at: int, token: str, follows: str) -> bool:
        if not (token.isdigit() and len(token) <= 2 and follows.isalpha()) or self._language not in _ORDINALS:
            return False
        place = at - len(token) - 1
        before = _token_before(text, place).lower()
        if before == "am" and _token_before(text, place - 3) == "I":
            return False  # English
        return before.strip(",") in _BEFORE_ORDINALS

    def _lacks_a_vowel(self, before: str, token: str, tail: str) -> bool:
        if self._language in _WITHOUT_VOWELS or len(tail) > 5 or not tail.isalpha() or tail in _INTERJECTIONS:
            return False
        if token[-1].isupper() or not ("LATIN" in unicodedata.name(tail[0], "") or tail[0] in "бвгджзклмнпрстфхцчшщ"):
            return False  # TV, PC; scripts that do not write vowels
        if before[-1:].isdigit():
            return False  # a unit
        return _VOWELS.isdisjoint(_without_accents(tail))

    def _judge_roman(self, text: str, start: int, known: bool) -> int:
        """Judge whether a Roman number follows: 0 when none does."""
        end = _end(_ROMAN, text, start)
        if end == len(text):
            return _NO if known else _WAIT
        if text[end].isalpha() or text[end] in "'’" or (text[start:end] == "I" and self._language in ("en", None)):
            return 0
        return _NO

    def _judge_next_word(self, text: str, start: int, known: bool) -> int:
        """Judge a stop that only the next word tells about."""
        end = start
        while end < len(text) and end - start < 13 and (text[end].isalpha() or text[end] in "'’"):
            end += 1
        if end == len(text) and not known:
            return _WAIT
        word = text[start:end].replace("’", "'").rstrip("'")
        if not word:
            return _NO if text[start].isdigit() or text[start] in "(&" else start
        return start if word.lower() in self._words.starters or not word[0].isupper() else _NO


def _token_before(text: str, at: int) -> str:
    """Return what stands before a place, back to a blank."""
    start = at
    while start > 0 and not text[start - 1].isspace() and at - start < 64:
        start -= 1
    return text[start:at]


def _joined(text: str, at: int, before: str, word: str) -> str:
    """Return an abbreviation of several words as one: ``z. B``, ``т. д``, ``EE. UU``."""
    while before.endswith(".") and len(before) <= 4 and before[0].isalpha():
        word = before.casefold() + word
        at -= len(before) + 1
        before = _token_before(text, at)
    return word


def _word_before(text: str, at: int) -> str:
    return _token_before(text, at).lstrip(_OPENERS).casefold()


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Return where a match ends of a pattern that matches nothing too."""
    found = pattern.match(text, at)
    assert found is not None
    return found.end()


def _is_lower(letter: str) -> bool:
    # Georgian letters count as lower-case ones, but the script writes no capitals
    return letter.islower() and not "\u10d0" <= letter <= "\u10ff"


def _without_accents(word: str) -> str:
    return "".join(letter for letter in unicodedata.normalize("NFD", word) if not unicodedata.combining(letter))
