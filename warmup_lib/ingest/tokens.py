"""Secrets in text: API keys by their published shapes, bearer tokens, private keys, passwords.

The shapes are those that the issuers publish for secret scanners. A test of public scanners is in
docs/requests.md.
"""

from __future__ import annotations

import re

SECRET = "<SECRET>"

_MARKS = (
    "sk-", "k_live_", "k_test_", "AKIA", "ASIA", "gh", "github_pat_", "glpat-", "xox", "AIza",
    "hf_", "npm_", "pypi-", "SG.", "gsk_", "xai-", "dop_v1_", "eyJ", "-----BEGIN", "://",
)  # fmt: skip
"""One of these, or one of `_WORDS` in any case, is in every text that holds a secret."""

WITHOUT_DIGITS = ("-----BEGIN", "AKIA", "ASIA")
"""Signs of the secrets that may well hold no digit."""

_WORDS = re.compile(r"bearer|basic|passw|pwd|secret|api[ _-]?key|token|accountkey", re.IGNORECASE)

_SHAPES = re.compile(
    r"(?<![A-Za-z0-9_-])(?:"
    r"sk-(?=[\w-]{0,80}\d)[\w-]{16,256}"
    r"|[sr]k_(?:live|test)_[A-Za-z0-9]{16,256}"
    r"|A(?:KIA|SIA)[A-Z0-9]{16}(?![A-Za-z0-9])"
    r"|gh[pousr]_[A-Za-z0-9]{20,255}"
    r"|github_pat_[A-Za-z0-9_]{20,255}"
    r"|glpat-[\w.-]{20,255}"
    r"|xox[abeoprs]-[\w-]{10,255}"
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
    rf"[\"']?\s{{0,3}}(?:[:=]|\bis\b)\s{{0,3}}[\"']?)({_VALUE})",
    re.IGNORECASE | re.ASCII,
)
_LOGIN = re.compile(r"(?<=://)[^\s/:@]{1,128}:[^\s/@]{1,256}(?=@)")


def shows_any(text: str) -> bool:
    """Return whether a text may hold a secret: cheap, and true too often."""
    return any(mark in text for mark in _MARKS) or _WORDS.search(text) is not None


def redact(text: str) -> str:
    """Return `text` with secrets replaced."""
    if "-----BEGIN" in text:
        text = _PRIVATE_KEY.sub(SECRET, text)
    text = _SHAPES.sub(SECRET, text)
    if "://" in text:
        text = _LOGIN.sub(SECRET, text)
    return _NAMED.sub(rf"\g<1>{SECRET}", text)
