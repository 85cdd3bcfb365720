"""A second implementation of the key contract, written from docs/keys.md with no line of ours.

It is what a reader in another language looks like: nothing but hashing, JSON and Unicode. The
tables of fields and parameters are read from the page itself.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

PAGE = (Path(__file__).parents[2] / "docs" / "keys.md").read_text(encoding="utf-8")
WHITE = "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
MARKS = {"`": "`", "\u1fef": "`", "\uff40": "`", "~": "~", "\uff5e": "~"}
REFUSED = [(0x34F, 0x34F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180D), (0x180F, 0x180F)]
REFUSED += [(0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xE0100, 0xE01EF)]
NONE: tuple[Any, ...] = (None, "", [], {})


def rows(heading: str) -> Iterator[list[str]]:
    """Yield the cells of the first table after a line of the page."""
    lines = PAGE[PAGE.index(f"\n{heading}\n") + 1 :].splitlines()
    first = next(n for n, line in enumerate(lines) if line.startswith("|---")) + 1
    for line in lines[first:]:
        if not line.startswith("|"):
            return
        yield [cell.strip() for cell in line.strip("|").split(" | ")]


def ticked(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


FIELDS = {ticked(domain)[0]: ticked(fields) for _, domain, fields in rows("## Digests")}
PARAMS = {
    name: None if default == "none" else json.loads(ticked(default)[0])
    for default, names in rows("### Parameters")
    for name in ticked(names)
}
_NO_CHANGE = PAGE[PAGE.index("Known to change no answer") :]
HARMLESS = set(ticked(_NO_CHANGE[: _NO_CHANGE.index("\n\n")]))


def marks(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and form of each run that may open or close a block."""
    at = 0
    while at < len(text):
        sign = MARKS.get(text[at])
        end = at
        while sign and end < len(text) and MARKS.get(text[end]) == sign:
            end += 1
        line = text[text.rfind("\n", 0, at) + 1 : at]
        if end - at >= 3 and (sign == "`" or not line.strip(WHITE)):
            yield at, end, (sign or "") * (end - at)
        at = max(end, at + 1)


def prose(text: str) -> str:
    text = unicodedata.normalize("NFKC", text)
    runs = re.split(f"([{WHITE}]+)", text)
    folded = [run if n % 2 == 0 else " \n"["\n" in run] for n, run in enumerate(runs)]
    return "".join(folded)


def canonical(text: str) -> str:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    made, at, opened = "", 0, ""
    for start, end, mark in marks(text):
        if not opened:
            made += prose(text[at:start]) + mark
            at, opened = end, mark
        elif mark[0] == opened[0] and len(mark) >= len(opened):
            made += text[at:start] + mark
            at, opened = end, ""
    made += text[at:] if opened else prose(text[at:])
    return made.strip(WHITE)


def embedding(text: str) -> str:
    folded = canonical(text).casefold()
    return folded if unicodedata.normalize("NFKC", folded) == folded else canonical(folded)


def as_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def number(value: Any) -> Any:
    if type(value) is float:
        return value or 0.0
    if type(value) is not int:
        return value
    digits = abs(value).bit_length()
    spare = digits > 53 and value & ((1 << (digits - 53)) - 1)
    return value if spare or digits > 1024 else float(value)


def params(given: Mapping[str, Any]) -> str:
    given = dict(given)
    if given.get("max_completion_tokens") is not None:
        given["max_tokens"] = given["max_completion_tokens"]
    said = {name: number(given.get(name)) for name in PARAMS}
    return as_json(
        {
            name: value
            for name, value in said.items()
            if value not in NONE and as_json(value) != as_json(number(PARAMS[name]))
        }
    )


def tenant(name: str) -> str:
    name = unicodedata.normalize("NFC", name).strip(WHITE)
    if not name.strip(WHITE + "*?%"):
        raise ValueError("no tenant")
    for c in name:
        unseen = unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
        if unseen or any(first <= ord(c) <= last for first, last in REFUSED):
            raise ValueError("a character that is not seen")
    return name


def history(messages: list[dict[str, Any]]) -> str:
    kept = []
    for message in messages:
        content = message.get("content")
        if isinstance(content, str):
            content = canonical(content)
        elif isinstance(content, list):
            content = [part_of(part) for part in content]
        full = {**message, "content": content}
        kept.append({k: v for k, v in full.items() if v not in NONE})
    return as_json(kept)


def part_of(part: Any) -> Any:
    if isinstance(part, str):
        return canonical(part)
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        return part | {"text": canonical(part["text"])}
    return part


def text_in(part: Any) -> Any:
    """Return the text of a text part; None: it is another part."""
    if isinstance(part, str):
        return part
    kinds = ("text", "input_text", "output_text")
    is_text = isinstance(part, dict) and part.get("type", "text") in kinds
    return part["text"] if is_text and isinstance(part.get("text"), str) else None


def said(message: Mapping[str, Any]) -> tuple[str, bool]:
    """Return a message's text, and whether its content is nothing besides."""
    content = message.get("content") or ""
    found = [content] if isinstance(content, str) else [text_in(part) for part in content]
    return "\n".join(one for one in found if one is not None), None not in found


def apart(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the fields of a list of messages."""
    system, n = [], 0
    for n, message in enumerate([*messages, {}]):  # noqa: B007 - where the beginning ends
        besides = {k for k, v in message.items() if v not in NONE}
        besides -= {"role", "content", "cache_control"}
        if message.get("role") not in ("system", "developer") or besides or not said(message)[1]:
            break
        system.append(said(message)[0])
    ours = re.compile("prompt_*")
    kept = [{k + "_" * bool(ours.fullmatch(k)): v for k, v in m.items()} for m in messages[n:]]
    last = max(i for i, m in enumerate(kept) if m["role"] == "user" and said(m)[0].strip(WHITE))
    prompt = said(kept[last])[0]
    for message in kept:
        parts = message.get("content")
        alone = parts[0] if isinstance(parts, list) and len(parts) == 1 else None
        if text_in(alone) is not None and (
            isinstance(alone, str) or set(alone) <= {"type", "text"}
        ):
            message["content"] = text_in(alone)
    place = {k: v for k, v in kept[last].items() if v not in NONE}
    if said(place)[1]:
        place.pop("content", None)
    stays = set(place) > {"role"} or last + 1 < len(kept)
    kept[last : last + 1] = [place | {"prompt": True}] if stays else []
    return {
        "system_prompt": "\n\n".join(one for one in system if one) or None,
        "history": kept,
        "prompt": prompt,
    }


class Reader:
    """Identities and keys under one secret, template and setting of dimensions."""

    def __init__(self, secret: bytes, template: str, dimensions: Mapping[str, Any]) -> None:
        self.secret, self.template, self.settings = secret, template, dimensions
        self.secret_id = hashlib.sha256(b"warmup-secret-id\0" + secret).hexdigest()[:6]

    def digest(self, domain: str, **parts: str | None) -> str:
        names = [n for n in FIELDS[domain] if n != "dimensions" or parts[n] is not None]
        data = [(parts[n] or "").encode("utf-8", "surrogatepass") for n in names]
        message = b"".join(len(d).to_bytes(8, "big") + d for d in (domain.encode(), *data))
        return hmac.new(self.secret, message, hashlib.sha256).hexdigest()[:32]

    def parts(self, request: Mapping[str, Any]) -> dict[str, str | None]:
        tools = request.get("tools")
        return {
            "tenant": tenant(request["tenant"]),
            "model": request["model"],
            "model_revision": request.get("model_revision") or "",
            "adapter": request.get("adapter") or "",
            "template": self.template,
            "system_prompt": canonical(request.get("system_prompt") or ""),
            "history": history(request.get("history") or []),
            "tools": as_json(tools) if tools else "",
            "params": params(request.get("params") or {}),
            "dimensions": self.dimensions(request.get("dimensions") or {}),
        }

    def dimensions(self, given: Mapping[str, Any]) -> str | None:
        kept = {}
        for name, setting in self.settings.items():
            value = given.get(name)
            if value in NONE:
                continue
            said = canonical(value if isinstance(value, str) else as_json(value))
            meant = setting.get("synonyms", {}).get(said, said)
            if meant not in ("", setting.get("default", "")):
                kept[name] = meant
        return as_json(kept) if kept else None

    def identity(self, request: Mapping[str, Any]) -> dict[str, str]:
        parts, prompt = self.parts(request), request["prompt"]
        context = self.digest("context", **parts)
        sent = parts | {"system_prompt": request.get("system_prompt")}
        return {
            "text": self.digest("text", prompt=embedding(prompt)),
            "context": context,
            "response": self.digest("response", context=context, prompt=canonical(prompt)),
            "head": self.digest("head", **sent),
        }

    def index(self, word: str, name: str) -> str:
        scope = self.digest("tenant", tenant=tenant(name))[:16]
        return f"wu1:{self.secret_id}:{scope}:{word}"

    def key(self, word: str, name: str, digest: str, place: Mapping[str, Any] = {}) -> str:
        of = {"model": "", "model_revision": "", "adapter": "", **place}
        return f"{self.index(word, name)}:{self.digest('place', **of)[:12]}:{digest}"

    def salt(self, name: str, adapter: str | None) -> str:
        of = {"tenant": tenant(name), "adapter": adapter, "template": self.template}
        return self.digest("salt-a", **of) + self.digest("salt-b", **of)
