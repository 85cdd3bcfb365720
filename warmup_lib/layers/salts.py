"""Which `cache_salt` a tenant's requests carry on a host; docs/keys.md describes the modes."""

from __future__ import annotations

from warmup_lib.layers.base import Context
from warmup_lib.targets.host import ModelHost


def salt_for(
    host: ModelHost, context: Context, tenant: str, adapter: str | None, once: str = ""
) -> str | None:
    """Return the salt for requests of a tenant; None: they carry none.

    Args:
        host: The host; its mode decides.
        context: The run. In a control run every mode salts, for a salt nothing was warmed under
            is what makes a request cold.
        tenant: The tenant.
        adapter: The adapter, as in the log.
        once: In a control run, what sets this request apart from the other ones, which would
            warm each other.
    """
    adapter = context.adapter(adapter)
    if context.control is not None:
        return context.keys.salt(f"{context.namespace(tenant)}~{once}", adapter)
    # No log format that is read holds the salt of a request, so `as-logged` knows none.
    return context.keys.salt(tenant, adapter) if host.cache_salt == "derived" else None
