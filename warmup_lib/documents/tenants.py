"""Whose a file of the user's is: a tenant, named in full."""

from __future__ import annotations

import re
import unicodedata

from warmup_lib.errors import InputDataError
from warmup_lib.keys import check_tenant

_PATTERN = re.compile("[*?]")


def own_tenant(name: str) -> str:
    """Return a tenant that a file names, as `check_tenant` does.

    Raises:
        InputDataError: It is none, or a pattern: it would be warmed for a tenant that nobody is.
    """
    tenant = check_tenant(name)
    if _PATTERN.search(unicodedata.normalize("NFKC", tenant)):
        raise InputDataError("a tenant is needed by its full name: a pattern with * or ? is none")
    return tenant
