"""The closed list of why a request missed: one word a cause, what it means and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

LOOKED_NOWHERE = "looked=none"
"""What shows a `bypass_middleware` where the gateway itself wrote down that it made no look."""


class Cause(StrEnum):
    """Why a request was not served by a warm entry. `unknown` is explicit, never a default."""

    UNSEEN = "unseen"
    BELOW_BUDGET = "below_budget"
    LEFT_OUT = "left_out"
    NOT_APPLIED = "not_applied"
    APPLY_FAILED = "apply_failed"
    EVICTED = "evicted"
    EXPIRED = "expired"
    FLUSHED = "flushed"
    HOST_RESTARTED = "host_restarted"
    KEY_TENANT = "key_tenant"
    KEY_ADAPTER = "key_adapter"
    KEY_MODEL_REVISION = "key_model_revision"
    KEY_TEMPLATE = "key_template"
    KEY_ENCODER = "key_encoder"
    KEY_DIMENSION = "key_dimension"
    KEY_TOKENISATION = "key_tokenisation"
    KEY_NORMALISATION = "key_normalisation"
    SUB_BLOCK = "sub_block"
    OTHER_HOST = "other_host"
    BYPASS_HEADER = "bypass_header"
    BYPASS_PARAMETER = "bypass_parameter"
    BYPASS_MIDDLEWARE = "bypass_middleware"
    HOST_NOT_READY = "host_not_ready"
    GUARD_REFUSED = "guard_refused"
    BELOW_THRESHOLD = "below_threshold"
    UNKNOWN = "unknown"

    @property
    def group(self) -> str:
        """The kind of cause, such as `key mismatch`."""
        return _ABOUT[self].group

    @property
    def meaning(self) -> str:
        """What happened, one clause."""
        return _ABOUT[self].meaning

    @property
    def remedy(self) -> str:
        """What to do about it, one sentence."""
        return _ABOUT[self].remedy

    @property
    def link(self) -> str:
        """Where the documentation says more, relative to the project's root."""
        return f"docs/causes.md#{self.value}"

    @property
    def mismatch(self) -> bool:
        """Whether the entry was warm, but under a key that the request can't find."""
        return self.value.startswith("key_")


@dataclass(frozen=True)
class _About:
    group: str
    meaning: str
    remedy: str


_PLAN, _APPLY, _GONE = "not planned", "not applied", "not resident"
_KEY, _BYPASS, _ANSWER = "key mismatch", "bypass", "not close enough"

_ABOUT = MappingProxyType(
    {
        Cause.UNSEEN: _About(
            _PLAN,
            "nothing like it is in the history, under any normalisation",
            "Nothing to mend: warm it from a list (`sources.pinned`) where it was foreseeable.",
        ),
        Cause.BELOW_BUDGET: _About(
            _PLAN,
            "it was a candidate, and others were worth more",
            "Raise what left no room: the source's limit, the layer's `items`, or a budget.",
        ),
        Cause.LEFT_OUT: _About(
            _PLAN,
            "it was left out on purpose, for the reason in the evidence",
            "See `left_out` of the plan: the reason says what would let it in.",
        ),
        Cause.NOT_APPLIED: _About(
            _APPLY,
            "it is planned, and was never applied to this target",
            "Run `warmup apply --plan ID --resume`.",
        ),
        Cause.APPLY_FAILED: _About(
            _APPLY,
            "applying it failed, with the error in the evidence",
            "Mend what the receipt's error says, then `warmup apply --plan ID --resume`.",
        ),
        Cause.EVICTED: _About(
            _GONE,
            "it was warm, and the target dropped it to make room",
            "Give the target more memory, or plan fewer items for it.",
        ),
        Cause.EXPIRED: _About(
            _GONE,
            "it was warm until its lifetime ended",
            "Raise the layer's TTL, or apply closer to the traffic.",
        ),
        Cause.FLUSHED: _About(
            _GONE,
            "it was warm, and the target lost everything at once",
            "Find who flushed or restarted the Redis, then apply again.",
        ),
        Cause.HOST_RESTARTED: _About(
            _GONE,
            "it was warm in a host process that is gone",
            "Apply again once the new process is ready: `warmup apply --plan ID`.",
        ),
        Cause.KEY_TENANT: _About(
            _KEY,
            "it is warm for another tenant",
            "Send the tenant that the log names; entries are never shared between tenants.",
        ),
        Cause.KEY_ADAPTER: _About(
            _KEY,
            "it is warm under another adapter, or other weights of it",
            "Ask for the adapter's served name (name and content hash), or plan again.",
        ),
        Cause.KEY_MODEL_REVISION: _About(
            _KEY,
            "it is warm for another model or revision",
            "Plan again from logs of the revision that is served.",
        ),
        Cause.KEY_TEMPLATE: _About(
            _KEY,
            "it is warm under another chat template",
            "Give planner and reader the template that the host uses.",
        ),
        Cause.KEY_ENCODER: _About(
            _KEY,
            "it is warm under another encoder's vectors",
            "Give planner and reader the same encoder, revision and pooling.",
        ),
        Cause.KEY_DIMENSION: _About(
            _KEY,
            "the request's key holds a dimension that changes no answer",
            "Keep the key's dimensions to the allow-list of docs/keys.md.",
        ),
        Cause.KEY_TOKENISATION: _About(
            _KEY,
            "the request's key was taken from tokens or from cut text",
            "Take the identity from the whole text, before any truncation.",
        ),
        Cause.KEY_NORMALISATION: _About(
            _KEY,
            "the request's key was taken from text that is not canonical",
            "Use canonical text (docs/keys.md) before taking the identity.",
        ),
        Cause.SUB_BLOCK: _About(
            _KEY,
            "the shared prefix is shorter than one cache block of the host",
            "Nothing to warm there: put what requests share first, or make it longer.",
        ),
        Cause.OTHER_HOST: _About(
            "routing",
            "it is warm on another host than the one that was asked",
            "Route by prefix or tenant, or warm the item on every host.",
        ),
        Cause.BYPASS_HEADER: _About(
            _BYPASS,
            "a header told the caches to stand aside",
            "Ask its caller whether `cache-control` is meant.",
        ),
        Cause.BYPASS_PARAMETER: _About(
            _BYPASS,
            "a parameter told the caches to stand aside",
            "Ask its caller whether `skip_cache` (or `disable_cache`) is meant.",
        ),
        Cause.BYPASS_MIDDLEWARE: _About(
            _BYPASS,
            "something between caller and cache went round it",
            "Look at the gateway's routes: no lookup was made though nothing asked for that.",
        ),
        Cause.HOST_NOT_READY: _About(
            "out of step",
            "warm-up or traffic reached a host that was not ready",
            "Wait for readiness before traffic; `warmup doctor --host` measures the offset.",
        ),
        Cause.GUARD_REFUSED: _About(
            _ANSWER,
            "a near entry differs in a number, name, unit or negation",
            "Right as it is: the answers differ. Warm the variant itself where it is hot.",
        ),
        Cause.BELOW_THRESHOLD: _About(
            _ANSWER,
            "the nearest entry is not similar enough for the promised error",
            "Raise the bound on wrong hits only if wrong answers may be served more often.",
        ),
        Cause.UNKNOWN: _About(
            "unknown",
            "no evidence fits",
            "Have the gateway write its evidence (docs/causes.md) and explain again.",
        ),
    }
)
