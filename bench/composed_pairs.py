"""Composes pairs of questions that may not share an answer, or that ask one thing in other words.

What may not share one has another negation, number or name.

Every pair is a real question and a changed copy of it, or two copies that got different values at
the same place. Which change, value and place a question gets follows from its text's hash, so that
the same questions give the same pairs. No text that they make was looked at when the guard was
written: it was tried on five other sets of forms and names before, of training questions.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence

KINDS = ("negated", "number", "entity")

_Two = tuple[str, str]


def _listed(names: str) -> tuple[str, ...]:
    return tuple(" ".join(name.split()) for name in names.split(","))


def _paired(words: str) -> dict[str, str]:
    pairs = (pair.split("/") for pair in words.split())
    return {one: other.replace("&", " ") for one, other in pairs}


# Of each list any two may meet; where it goes is one of its forms.
ENTITIES: Sequence[tuple[tuple[str, ...], tuple[str, ...]]] = (
    (
        (
            "Greetings from {}! {text}",
            "{text} if I go to {}",
            "My bank branch in {} is closed. {text}",
        ),
        _listed("""
            Leicester, Nottingham, Coventry, Exeter, Norwich, Brighton, Derry, Kilkenny, Cádiz,
            Salamanca, Verona, Palermo, Genoa, Grenoble, Lille, Nantes, Bochum, Dortmund, Bonn,
            Potsdam, Basel, Salzburg, Graz, Ghent, Antwerp, Rotterdam, The Hague, Aarhus, Malmö,
            Stavanger, Helsinki, Tallinn, Gdansk, Wroclaw, Bratislava, Zagreb, Split, Sarajevo,
            Sofia, Bucharest, Ankara, Beirut, Amman, Riyadh, Cairo, Casablanca, Kampala,
            Johannesburg, Pretoria, Jakarta, Manila, Taipei, Kobe, Nagoya, Mumbai, Kolkata, Lahore,
            Brisbane, Canberra, Edmonton, Phoenix, Baltimore, Charlotte, Las Vegas, Lima, Quito,
            Caracas, Santiago
        """),
    ),
    (
        ("{text} when the shop is in {}", "I come from {}. {text}", "{text} inside {}"),
        _listed("""
            France, Spain, Italy, Germany, Poland, Portugal, Greece, Cyprus, Malta, Austria,
            Belgium, Denmark, Norway, Iceland, Latvia, Slovakia, Slovenia, Serbia, Ukraine,
            Belarus, Turkey, Iran, Iraq, Pakistan, Nepal, Bangladesh, Malaysia, Indonesia,
            Philippines, Cambodia, China, Japan, Singapore, Tunisia, Ghana, Kenya, Ethiopia,
            Mexico, Cuba, Jamaica, Panama, Peru, Chile, Bolivia, Uruguay, Argentina, Canada, New
            Zealand, South Korea, Saudi Arabia
        """),
    ),
    (
        ("{text} My partner {} asks", "Dear {}, {text}", "{text} I owe it to {}"),
        _listed("""
            Beatrice, Arthur, Florence, Leo, Isla, Oscar, Rosie, Archie, Poppy, Theo, Gabriel,
            Camille, Mathilde, Baptiste, Giorgio, Francesca, Matteo, Bianca, Wolfgang, Heidi,
            Jürgen, Anneliese, Pieter, Saskia, Bjorn, Ingrid, Piotr, Katarzyna, Laszlo, Zsofia,
            Dragan, Milica, Nikolai, Tatiana, Hassan, Layla, Ibrahim, Zainab, Chinedu, Wanjiru,
            Rohan, Priya, Jing, Wei, Kenta, Hana, Mateo, Camila, Joaquim, Larissa, Mr Roberts, Mrs
            Hughes, Dr Singh, Sergeant Cole
        """),
    ),
    (
        ("{text} the shop was {}", "My employer is {}. {text}", "{text} through {}"),
        _listed("""
            Marks & Spencer, John Lewis, Debenhams, Poundland, Iceland, Ocado, Kroger, Publix,
            Safeway, Macy's, Nordstrom, Home Depot, MediaMarkt, Saturn, Auchan, Leroy Merlin,
            Mercadona, El Corte Inglés, Esselunga, Rewe, Edeka, Penny, Rossmann, Hema, Bol,
            Coolblue, Otto, Swarovski, Pandora, Rolex, Tesla, Toyota, Volvo, Renault, Peugeot,
            Shell, Esso, BP, Repsol, Uber, Cabify, FreeNow, Lime, Tier, Amtrak, Renfe, SNCF, Agoda,
            Trivago, HelloFresh, Gousto, Peloton, Fitbit, Notion, Canva, OpenAI, GitHub, Aviva,
            Allianz, AXA, Zurich, Danske Bank, Swedbank, Crypto.com, Bitpanda, Gemini
        """),
    ),
    (
        ("{text} I have only {}", "Say it is {}. {text}", "{text} against {}"),
        _listed("""
            Swiss francs, Danish kroner, Norwegian kroner, Czech koruna, Polish zloty, Hungarian
            forint, Turkish lira, Israeli shekels, Saudi riyals, Emirati dirhams, Moroccan dirhams,
            Egyptian pounds, Nigerian naira, Ghanaian cedi, South African rand, Kenyan shillings,
            Indian rupees, Thai baht, Chinese yuan, Japanese yen, South Korean won, Malaysian
            ringgit, Canadian dollars, US dollars, Argentine pesos, Colombian pesos, Peruvian
            soles, euros, sterling, monero, cardano, USD, EUR, GBP, JPY, CHF, CNY, INR, SEK, HUF,
            TRY, ZAR, THB, SAR, QAR, EGP, COP, PEN
        """),
    ),
    (
        ("{text} as it happened {}", "I will travel {}. {text}", "{text} by {}"),
        _listed("""
            Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday, January, February,
            April, June, July, September, October, November, December, next Monday, next June,
            tomorrow, tonight, this afternoon, this winter, next summer, noon, midnight, Christmas,
            Easter, Halloween, Thanksgiving, Ramadan, Bank Holiday Monday, Carnival, the end of
            May, the start of August
        """),
    ),
)

_SMALL = tuple(str(n) for n in range(2, 31))
_MONEY = (
    *_listed("15, 33.50, 70, 85, 120, 199, 240.99, 375, 500, 800, 2000, 7500"),
    "1,250",
    "3,000",
)
_CLOCK = tuple(f"{hour}:{minute}" for hour in range(1, 13) for minute in ("05", "15", "40"))
_CODES = tuple(str(20117 + 4931 * n) for n in range(30))
_SPELLED = _listed("""
    two, three, four, five, six, seven, eight, nine, ten, eleven, thirteen, fourteen, sixteen,
    seventeen, eighteen, nineteen, twenty-five, thirty, forty-two, fifty, sixty, seventy,
    eighty-eight, ninety, a hundred, two hundred, a thousand
""")
_PLACES = _listed("first, second, third, fourth, fifth, sixth, seventh, eighth, ninth, 12th, 11th")
NUMBERS: Sequence[tuple[tuple[str, ...], tuple[str, ...]]] = (
    (("My balance is £{}. {text}", "{text} The amount was {} euros", "{text} of ${}"), _MONEY),
    (("{text} I asked at {}", "At {} I saw it. {text}"), _CLOCK),
    (("Case {}: {text}", "{text} My postcode is {}", "My customer number is {}. {text}"), _CODES),
    (("{text} for {} days", "I am {}. {text}", "{text} more than {} hours ago"), _SMALL),
    (("{text} It has {} digits", "I live {} miles away. {text}", "{text} in {} months"), _SMALL),
    (("I own {} cards. {text}", "{text} for {} dollars", "{text} within {} days"), _SPELLED),
    (("It is the {} card I got. {text}", "{text} on my {} try", "{text} on the {} day"), _PLACES),
    (("They took {}% of it. {text}", "{text} at {} percent"), _SMALL),
    (("I pay {} a month. {text}", "{text} up to {} a week"), _MONEY),
    (("{text} once I am {}", "We are {} friends. {text}"), _SMALL),
)

_NUMBER = re.compile(r"(?<![\w.,])\d+(?:[.,]\d+)?(?![\w.,]\d)")
_END = re.compile(r"[\s.?!]*$")
_WONDERS = re.compile(
    r" (?:know|understand|sure|certain|remember|figure|see|find|tell|think)\b", re.IGNORECASE
)
"""Whether somebody knows or sees it does not change what is asked ("I don't know why ...")."""
_AUXILIARIES = "is|are|was|were|does|did|do|has|have|had|can|could|will|would|should"
_LACK = re.compile(rf"\b(?:({_AUXILIARIES}|ca|wo)n'?t|(\w+) not|cannot|never)\b", re.IGNORECASE)
_BASES = _paired("""
        got/get made/make received/receive lost/lose used/use tried/try saw/see sent/send
        bought/buy went/go paid/pay ordered/order forgot/forget changed/change took/take
        transferred/transfer withdrew/withdraw requested/request entered/enter asked/ask
        noticed/notice topped/top moved/move started/start wanted/want needed/need
""")
_VERBS = ("want", "need", "like", "use", "get", "live", "plan", "wish", "own", "travel")
_OPPOSITES = _paired("""
        able/unable any/no someone/no&one somebody/nobody something/nothing anything/nothing
        with/without enough/not&enough yet/not&yet paid/unpaid used/unused registered/unregistered
        verified/unverified supported/unsupported reasonable/unreasonable satisfied/dissatisfied
        visible/invisible eligible/ineligible allowed/disallowed correctly/incorrectly
        normal/abnormal legitimate/illegitimate honest/dishonest helpful/unhelpful trust/distrust
        refundable/non-refundable existing/non-existing sufficient/insufficient aware/unaware
        expectedly/unexpectedly
""")


def composed(kind: str, text: str) -> _Two | None:
    """Return two questions that differ in what `kind` says; None: this text has no place for it."""
    if kind == "negated":
        ways = [other for way in _WAYS if (other := way(text)) not in (None, text)]
        return (text, str(ways[_pick(text, "way", len(ways))])) if ways else None
    if kind == "number":
        return _other_number(text)
    return _filled(text, "entity", ENTITIES)


def reworded(text: str) -> _Two:
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


# -- another negation ----------------------------------------------------------------------------


def _without_it(text: str) -> str | None:
    """Take the first negation out."""
    found = _LACK.search(text)
    if found is None or _WONDERS.match(text, found.end()):
        return None
    word = found[1] or found[2] or ("can" if found[0].lower() == "cannot" else "")
    plain = {"ca": "can", "wo": "will"}.get(word.lower(), word)
    return " ".join(f"{text[: found.start()]}{plain}{text[found.end() :]}".split())


def _asked(text: str) -> str | None:
    """Negate a question: "Can't I ...", "Can I not ...", "Can I no longer ..."."""
    found = re.search(
        rf"\b({_AUXILIARIES}) (i|you|it|we|they|there|(?:my|the|your|this) \w+)\b(?! not\b)",
        text,
        re.IGNORECASE,
    )
    if found is None:
        return None
    aux, who = found[1], found[2]
    forms = (f"{_short(aux)} {who}", f"{aux} {who} not", f"{aux} {who} no longer")
    form = forms[_pick(text, "asked", len(forms))]
    return f"{text[: found.start()]}{form}{text[found.end() :]}"


def _said(text: str) -> str | None:
    """Negate a statement: "it is not", "it isn't", "it isnt", "it is never"."""
    found = re.search(
        rf"\b(?!(?:how|what|when|where|why|who|which|long|much|many|and|but|or)\b)(\w+)"
        rf" ({_AUXILIARIES}|am)\b(?!'| not\b| i\b| you\b| my\b| the\b| it\b| there\b| we\b)",
        text,
        re.IGNORECASE,
    )
    if found is None:
        return None
    who, aux = found[1], found[2]
    forms = [f"{aux} not", f"{aux} not even", f"{aux} never", f"{aux} by no means"]
    if aux.lower() != "am":
        forms += [_short(aux), _short(aux), _short(aux).replace("'", "")]
    form = forms[_pick(text, "said", len(forms))]
    return f"{text[: found.start()]}{who} {form}{text[found.end() :]}"


def _did(text: str) -> str | None:
    """Negate a verb: "I don't want", "I didn't receive"."""
    present, past = ("don't", "do not", "never"), ("didn't", "did not", "didnt")
    for verbs, words in ((_VERBS, present), (_BASES, past)):
        found = re.search(rf"\b(i|we|they|someone) ({'|'.join(verbs)})\b", text, re.IGNORECASE)
        if found is None or re.search(rf"\b({_AUXILIARIES})\s*$", text[: found.start()], re.I):
            continue
        word, verb = words[_pick(text, "did", len(words))], found[2]
        verb = _BASES.get(verb.lower(), verb)
        return f"{text[: found.start()]}{found[1]} {word} {verb}{text[found.end() :]}"
    return None


def _opposite(text: str) -> str | None:
    """Put a word that denies for one that does not: "unable", "without", "nobody"."""
    found = re.search(rf"\b({'|'.join(_OPPOSITES)})\b", text, re.IGNORECASE)
    if found is None:
        return None
    word = _OPPOSITES[found[0].lower()]
    return text[: found.start()] + word + text[found.end() :]


def _told(text: str) -> str | None:
    """Forbid what is told: "Don't cancel ...", "Please do not send ..."."""
    found = re.match(
        r"(please )?(help|tell|show|cancel|freeze|block|close|delete|send|give|change|verify"
        r"|activate|stop|refund|check|fix|explain)\b",
        text,
        re.IGNORECASE,
    )
    if found is None:
        return None
    word = ("Don't", "Do not", "Never")[_pick(text, "told", 3)]
    start = f"{found[1]}{word.lower()}" if found[1] else word
    return f"{start} {found[2].lower()}{text[found.end() :]}"


def _to(text: str) -> str | None:
    """Negate what is wanted: "how not to be charged"."""
    found = re.search(r"\b(how|way|want|need|have|like|trying|possible) to\b", text, re.IGNORECASE)
    return f"{text[: found.end(1)]} not to{text[found.end() :]}" if found else None


_WAYS: Sequence[Callable[[str], str | None]] = (
    _without_it,
    _to,
    _asked,
    _said,
    _did,
    _opposite,
    _told,
)


def _short(auxiliary: str) -> str:
    short = {"can": "ca", "will": "wo"}.get(auxiliary.lower(), auxiliary)
    return f"{short.capitalize() if auxiliary[0].isupper() else short}n't"


# -- another number or name ----------------------------------------------------------------------


def _other_number(text: str) -> _Two:
    """Change a number that stands in the text, or give two copies different ones."""
    if found := _NUMBER.search(text):
        new = str(int(re.sub(r"\D", "", found[0])) + 1 + _pick(text, "number", 30))
        return text, text[: found.start()] + new + text[found.end() :]
    return _filled(text, "amount", NUMBERS)


def _filled(text: str, salt: str, lists: Sequence[tuple[tuple[str, ...], tuple[str, ...]]]) -> _Two:
    """Give two copies different values of one list, in one form."""
    forms, values = lists[_pick(text, salt, len(lists))]
    form = forms[_pick(text, f"{salt} form", len(forms))]
    first = _pick(text, f"{salt} value", len(values))
    step = 1 + _pick(text, f"{salt} other", len(values) - 1)
    one, other = values[first], values[(first + step) % len(values)]
    return _put(text, form, one), _put(text, form, other)


def _put(text: str, form: str, value: str) -> str:
    # Who writes no capitals at all writes names without them too.
    before, after = form.split("{text}")
    said = after.strip()
    whole = f"{text} {said}" if said[:1].isupper() else _end(text, said) if said else text
    filled = f"{before}{whole}".replace("{}", value)
    return filled.lower() if text == text.lower() else filled


def _end(text: str, words: str) -> str:
    """Put words before the marks at the end of a text."""
    end = _END.search(text)
    at = len(text) if end is None else end.start()
    return f"{text[:at]} {words}{text[at:]}"


# -- the same in other words ---------------------------------------------------------------------


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
