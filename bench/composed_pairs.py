"""Composes pairs of questions that may not share an answer, or that ask one thing in other words.

What may not share one has another negation, number or name.

Every pair is a real question and a changed copy of it, or two copies that got different values at
the same place. Which change, value and place a question gets follows from its text's hash, so that
the same questions give the same pairs. The names are taken from lists of the world's large cities,
states, currencies, first names and chain stores, not from what the guard knows.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


KINDS = ("negated", "number", "entity")

CITIES = _words("""
    Lagos Kinshasa Karachi Jakarta Dhaka Manila Delhi Mumbai Kolkata Lima Bogotá Santiago Caracas
    Quito Havana Nairobi Kampala Accra Dakar Tunis Casablanca Cairo Riyadh Amman Beirut Ankara Izmir
    Kyiv Minsk Riga Vilnius Tallinn Helsinki Gothenburg Malmö Bergen Aarhus Rotterdam Utrecht
    Antwerp Ghent Basel Lausanne Salzburg Graz Linz Krakow Gdansk Brno Bratislava Zagreb Split
    Sarajevo Belgrade Sofia Bucharest Porto Braga Granada Zaragoza Palma Nice Nantes Lille Genoa
    Palermo Verona Osaka Kobe Busan Taipei Hanoi Perth Brisbane Auckland Ottawa Calgary Austin
    Phoenix Portland Detroit Baltimore Nashville London Paris Berlin Madrid Rome Dublin Chicago
""")
COUNTRIES = _words("""
    Nigeria Kenya Ghana Ethiopia Algeria Tunisia Jordan Lebanon Iraq Iran Pakistan Nepal Bangladesh
    Malaysia Indonesia Philippines Cambodia Laos Mongolia Ukraine Belarus Latvia Estonia Finland
    Iceland Slovakia Slovenia Croatia Serbia Bulgaria Romania Hungary Malta Cyprus Peru Chile
    Bolivia Ecuador Colombia Venezuela Cuba Jamaica Panama Argentina Uruguay France Spain Italy
    Germany Poland Japan China India Canada Brazil Mexico
""")
PEOPLE = _words("""
    Olivia Noah Amelia Liam Isla Oliver Ava Elijah Mia James Ivy William Lily Lucas Freya Henry
    Aisha Mohammed Fatima Omar Priya Arjun Wei Mei Yuki Haruto Sofía Mateo Camila Diego Chloé Louis
    Emma Jonas Mila Elias Giulia Leonardo Zofia Jakub Ingrid Lars Katarina Pavel
""")
SHOPS = _words("""
    Tesco Lidl Aldi Carrefour Ikea Primark Zara Decathlon Starbucks Costco Walmart Target Argos
    Greggs Nando's Ryanair easyJet Uber Bolt Deliveroo Netflix Spotify Amazon eBay Etsy Shell
    Sainsbury's Waitrose Boots Superdrug
""")
CURRENCIES = (
    *("Kenyan shillings", "Thai baht", "Czech koruna", "Hungarian forints", "South African rand"),
    *("Israeli shekels", "Malaysian ringgit", "Colombian pesos", "Danish kroner", "Polish zloty"),
    *(
        "Turkish lira",
        "Saudi riyals",
        "Indian rupees",
        "Japanese yen",
        "Swiss francs",
        "US dollars",
    ),
    *("Australian dollars", "British pounds", "euros", "Korean won"),
)
MOMENTS = (
    *("on Monday", "on Tuesday", "on Wednesday", "on Thursday", "on Friday", "on Saturday"),
    *("on Sunday", "in January", "in March", "in May", "in August", "in October", "at Christmas"),
    *("in November", "at Easter", "at Halloween"),
)
_ONES = _words("one two three four five six seven eight nine ten eleven twelve thirteen")
_ONES += _words("fourteen fifteen sixteen seventeen eighteen nineteen")
_TENS = _words("twenty thirty forty fifty sixty seventy eighty ninety")
_ORDINALS = _words("first second third fourth fifth sixth seventh")
_AUXILIARY = re.compile(
    r"\b(is|are|was|were|has|have|had|can|could|will|would|should|does|did|do|am)\b"
    r"(?= (i|you|he|she|it|we|they|my|the|your|this|that|there)\b)?",
    re.IGNORECASE,
)
_SUBJECT = re.compile(
    r" (?:my|the|your|this|that) [\w'-]+(?<='s) \w+| (?:my|the|your|this|that) [\w'-]+| \w+",
    re.IGNORECASE,
)
_NEGATED = re.compile(r"\b(\w+)(n't| not\b)|\bcannot\b", re.IGNORECASE)
_WONDERS = re.compile(
    r" (?:know|understand|sure|certain|remember|figure|see|find|tell)\b", re.IGNORECASE
)
"""Whether somebody knows or sees it does not change what is asked ("I don't know why ...")."""
_NUMBER = re.compile(r"(?<![\w.,])\d+(?:[.,]\d+)?(?![\w.,]\d)")
_END = re.compile(r"[\s.?!]*$")


def composed(kind: str, text: str) -> tuple[str, str] | None:
    """Return two questions that differ in what `kind` says; None: this text has no place for it."""
    if kind == "negated":
        other = _negated(text)
        return None if other is None or other == text else (text, other)
    return _other_number(text) if kind == "number" else _other_entity(text)


def reworded(text: str) -> tuple[str, str]:
    """Return a question and what another user would type for it: a greeting, thanks, a typo ..."""
    how = _pick(text, "wording", 6)
    if how == 0:
        greeting = ("Hi", "Hello", "Hey there", "Good morning")[_pick(text, "greeting", 4)]
        return text, f"{greeting}, {text}"
    if how == 1:
        return text, _end(text, "please")
    if how == 2:
        return text, f"{text} Thanks!"
    if how == 3 and (shorter := _contracted(text)) != text:
        return text, shorter
    if how == 4:
        return text, _END.sub("", text).lower()
    return text, _mistyped(text)


def _contracted(text: str) -> str:
    """Write out what is contracted, else contract what is written out."""
    longer = re.sub(r"n't\b", " not", re.sub(r"\b([Cc]a)n't\b", r"\1n not", text))
    longer = re.sub(r"\b([Ii])'m\b", r"\1 am", re.sub(r"\b([Ii])'ve\b", r"\1 have", longer))
    if longer != text:
        return longer
    shorter = re.sub(r"\b([Ii]) am\b", r"\1'm", re.sub(r"\b([Ii]) have\b", r"\1've", text))
    return re.sub(r"\b(do|does|did|is|was|has|have) not\b", r"\1n't", shorter)


def _mistyped(text: str) -> str:
    """Swap two letters inside a long word."""
    long = list(re.finditer(r"[a-z]{6,}", text))
    if not long:
        return f"{text} Thank you"
    word = long[_pick(text, "word", len(long))]
    at = word.start() + 2 + _pick(text, "letter", len(word[0]) - 4)
    return text[:at] + text[at + 1] + text[at] + text[at + 2 :]


def _pick(text: str, salt: str, size: int) -> int:
    digest = hashlib.sha256(f"{salt}\0{text}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % size


def _two(text: str, salt: str, values: Sequence[str]) -> tuple[str, str]:
    """Return two different values of a list."""
    first = _pick(text, salt, len(values))
    step = 1 + _pick(text, f"{salt} other", len(values) - 1)
    return values[first], values[(first + step) % len(values)]


def _negated(text: str) -> str | None:
    """Take the first negation out, or put one in: not, n't, nt, never, no longer, unable to."""
    if taken := _NEGATED.search(text):
        if _WONDERS.match(text, taken.end()):
            return None
        plain = {"ca": "can", "wo": "will"}.get((taken[1] or "").lower(), taken[1]) or "can"
        return text[: taken.start()] + plain + text[taken.end() :]
    found = _AUXILIARY.search(text)
    if found is None:
        return None
    word, asks = found[1], found[2] is not None
    how = _pick(text, "negation", 20)
    if how < 8 or word.lower() == "am":  # "is it not", "it is not"
        at = found.end()
        if asks:
            at += len((_SUBJECT.match(text, at) or [""])[0])
        return f"{text[:at]} not{text[at:]}"
    if how < 15:
        short = {"can": "ca", "will": "wo"}.get(word.lower(), word)
        short = short if word.islower() else short.capitalize()
        end = "n't" if how < 13 else "nt"
        return f"{text[: found.start()]}{short}{end}{text[found.end() :]}"
    at = found.end() + (len((_SUBJECT.match(text, found.end()) or [""])[0]) if asks else 0)
    return f"{text[:at]} {'never' if how < 18 else 'no longer'}{text[at:]}"


def _other_number(text: str) -> tuple[str, str]:
    """Change a number that stands in the text, or give two copies different ones."""
    if found := _NUMBER.search(text):
        old = found[0]
        new = str(int(re.sub(r"\D", "", old)) + 1 + _pick(text, "number", 9))
        return text, text[: found.start()] + new + text[found.end() :]
    how = _pick(text, "form", 8)
    if how == 0:
        one, other = _two(text, "ordinal", _ORDINALS)
        return _end(text, f"for the {one} time"), _end(text, f"for the {other} time")
    if how == 1:
        return _end(text, "once a month"), _end(text, "twice a month")
    one, other = _two(text, "amount", [str(n) for n in (*range(2, 100), 120, 150, 200, 250, 500)])
    if how == 2:
        return _end(text, f"{one} days ago"), _end(text, f"{other} days ago")
    if how == 3:
        return _end(text, f"for £{one}"), _end(text, f"for £{other}")
    if how == 4:
        hour = int(one) % 12 + 1, int(other) % 12 + 1
        if hour[0] != hour[1]:
            return _end(text, f"at {hour[0]}pm"), _end(text, f"at {hour[1]}pm")
    if how == 5:
        return _end(text, f"of {one} percent"), _end(text, f"of {other} percent")
    if how == 6:
        return _end(text, f"for {one} euros"), _end(text, f"for {other} euros")
    said = [_spelled(int(n)) for n in (one, other)]
    return _end(text, f"for {said[0]} pounds"), _end(text, f"for {said[1]} pounds")


def _spelled(number: int) -> str:
    if number < 20:
        return _ONES[number - 1]
    if number < 100:
        tens, ones = _TENS[number // 10 - 2], number % 10
        return f"{tens}-{_ONES[ones - 1]}" if ones else tens
    rest = number % 100
    return f"{_ONES[number // 100 - 1]} hundred" + (f" and {_spelled(rest)}" if rest else "")


def _other_entity(text: str) -> tuple[str, str]:
    """Give two copies different cities, countries, people, shops, currencies or moments."""
    form, values = (
        ("in {}", CITIES),
        ("in {}", COUNTRIES),
        ("for {}", PEOPLE),
        ("at {}", SHOPS),
        ("in {}", CURRENCIES),
        ("{}", MOMENTS),
    )[_pick(text, "entity", 6)]
    return _ends(text, form, _two(text, "value", values))


def _ends(text: str, form: str, values: tuple[str, str]) -> tuple[str, str]:
    # Who writes no capitals at all writes names without them too.
    one, other = (v.lower() if text == text.lower() else v for v in values)
    return _end(text, form.format(one)), _end(text, form.format(other))


def _end(text: str, words: str) -> str:
    """Put words before the marks at the end of a text."""
    end = _END.search(text)
    at = len(text) if end is None else end.start()
    return f"{text[:at]} {words}{text[at:]}"
