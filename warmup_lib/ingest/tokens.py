"""Secrets in text: API keys by the shapes their issuers give them, bearer tokens, private keys.

detect-secrets finds the same on generated secrets (docs/requests.md) but needs
about 1.4 ms for a short text, a hundred times what these patterns need, and its entropy rules also
take hashes and ids for secrets.
"""

from __future__ import annotations

import re

SECRET = "<SECRET>"

_DIGIT = re.compile(r"\d")
_LONG = re.compile(r"[\w-]{16}", re.ASCII)
"""Every secret of a known shape has a run as long as this, which hardly any other text has."""

_WORDS = (
    "bearer", "basic", "passw", "passphrase", "pwd", "secret", "apikey", "api_key", "api-key",
    "api key", "accesskey", "access_key", "access-key", "accountkey", "token",
    "密码", "口令", "密钥",
)  # fmt: skip
"""A text with a secret that a word before it tells holds one of these, in any case."""

_SHAPES = re.compile(
    r"(?<![A-Za-z0-9_-])(?:"
    r"sk-(?=[\w-]{0,80}\d)[\w-]{16,256}"
    r"|[sr]k_(?:live|test)_[A-Za-z0-9]{16,256}"
    r"|A(?:KIA|SIA)[A-Z0-9]{16}(?![A-Za-z0-9])"
    r"|gh[pousr]_[A-Za-z0-9]{20,255}"
    r"|github_pat_[A-Za-z0-9_]{20,255}"
    r"|glpat-[\w.-]{20,255}"
    r"|xox[abeoprs]-[\w-]{11,255}"
    r"|AIza[\w-]{35}"
    r"|hf_[A-Za-z0-9]{30,255}"
    r"|npm_[A-Za-z0-9]{36}"
    r"|pypi-AgE[\w-]{50,255}"
    r"|SG\.[\w-]{16,64}\.[\w-]{16,64}"
    r"|(?:gsk_|xai-)[A-Za-z0-9]{32,255}"
    r"|dop_v1_[a-f0-9]{64}"
    r"|eyJ[\w-]{8,4096}\.eyJ[\w-]{8,8192}(?:\.[\w-]{0,2048})?"
    r")",
    re.ASCII,
)
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:.{0,16384}?-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|[A-Za-z0-9+/=\s]*)",
    re.DOTALL,
)
_VALUE = r"(?=[^\s\"',;]{0,80}\d)(?=[^\s\"',;]{0,80}[A-Za-z])[\w+/=.~!@#%^&*-]{8,4096}"
_NAMED = re.compile(
    r"(?<![A-Za-z0-9])((?:bearer\s{1,3}|authorization\s{0,3}[:=]\s{0,3}basic\s{1,3})"
    r"|(?:[a-z]{1,20}[_-]){0,3}(?:password|passwd|passphrase|pwd|secret|secret[_-]?key|token"
    r"|api[ _-]?key|access[_-]?key|accountkey|access[_-]?token|auth[_-]?token)"
    rf"[\"']?\s{{0,3}}(?:[:=\uff1a]|\bis\b)\s{{0,3}}[\"']?"
    rf"|(?:密码|口令|密钥)\s{{0,3}}(?:[:=\uff1a]|是|为)\s{{0,3}})({_VALUE})",
    re.IGNORECASE | re.ASCII,
)
_LOGIN = re.compile(r"(?<=://)[^\s/:@]{1,128}:[^\s/@]{1,256}(?=@)")


def redact(text: str) -> str:
    """Return `text` with secrets replaced; the same object when there are none."""
    if "PRIVATE KEY" in text:
        text = _PRIVATE_KEY.sub(SECRET, text)
    if _LONG.search(text):
        text = _SHAPES.sub(SECRET, text)
    if "://" in text:
        text = _LOGIN.sub(SECRET, text)
    if _DIGIT.search(text):
        lower = text.lower()
        if any(word in lower for word in _WORDS):
            text = _NAMED.sub(rf"\g<1>{SECRET}", text)
    return text
