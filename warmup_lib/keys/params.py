"""Canonical JSON, and the parameters of a request that can change its answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from warmup_lib.errors import InputDataError

SAMPLING_DEFAULTS: Mapping[str, Any] = {
    "add_generation_prompt": True,
    "add_special_tokens": None,
    "allowed_token_ids": None,
    "audio": None,
    "bad_words": None,
    "best_of": None,
    "cached_content": None,
    "chat_template": None,
    "chat_template_kwargs": None,
    "container": None,
    "context_management": None,
    "continue_final_message": False,
    "conversation": None,
    "custom_logit_processor": None,
    "custom_params": None,
    "data_sources": None,
    "documents": None,
    "ebnf": None,
    "echo": False,
    "enable_thinking": None,
    "extra_body": None,
    "format": None,
    "frequency_penalty": 0,
    "function_call": None,
    "functions": None,
    "generation_config": None,
    "grammar": None,
    "guided_choice": None,
    "guided_decoding_backend": None,
    "guided_grammar": None,
    "guided_json": None,
    "guided_regex": None,
    "guided_whitespace_pattern": None,
    "ignore_eos": False,
    "images_config": None,
    "include_reasoning": True,
    "include_stop_str_in_output": False,
    "input_ids": None,
    "json_schema": None,
    "length_penalty": 1,
    "logit_bias": None,
    "logits_processors": None,
    "logprob_token_ids": None,
    "logprobs": False,
    "lora_path": None,
    "max_dynamic_patch": None,
    "max_tokens": None,
    "mcp_servers": None,
    "media_io_kwargs": None,
    "min_dynamic_patch": None,
    "min_p": 0,
    "min_tokens": 0,
    "mm_processor_kwargs": None,
    "modalities": None,
    "moderation": None,
    "n": 1,
    "no_stop_trim": False,
    "options": None,
    "output_config": None,
    "parallel_tool_calls": True,
    "plugins": None,
    "presence_penalty": 0,
    "previous_response_id": None,
    "prompt_logprobs": None,
    "provider": None,
    "reasoning": None,
    "reasoning_effort": None,
    "regex": None,
    "repeat_penalty": None,
    "repetition_detection": None,
    "repetition_penalty": 1,
    "response_format": {"type": "text"},
    "return_hidden_states": None,
    "return_meta_info": None,
    "return_prompt_text": None,
    "return_prompt_token_ids": None,
    "return_routed_experts": None,
    "return_token_ids": None,
    "return_tokens_as_token_ids": None,
    "safety_settings": None,
    "search_parameters": None,
    "seed": None,
    "separate_reasoning": True,
    "session_params": None,
    "skip_special_tokens": True,
    "spaces_between_special_tokens": True,
    "stop": None,
    "stop_regex": None,
    "stop_sequences": None,
    "stop_token_ids": None,
    "structured_outputs": None,
    "suffix": None,
    "task": None,
    "temperature": 1,
    "text": None,
    "think": None,
    "thinking": None,
    "thinking_budget": None,
    "thinking_token_budget": None,
    "tool_choice": None,
    "tool_config": None,
    "top_a": None,
    "top_k": -1,
    "top_logprobs": 0,
    "top_p": 1,
    "transforms": None,
    "truncate": None,
    "truncate_prompt_tokens": None,
    "truncation": None,
    "truncation_side": None,
    "typical_p": None,
    "use_audio_in_video": False,
    "use_beam_search": False,
    "verbosity": None,
    "vllm_xargs": None,
    "watermark": None,
    "watermarking": None,
    "web_search_options": None,
}
"""The parameters that can change an answer, with the value that absence means. Every other
parameter (stream, user, metadata ...) is left out and so can't split the key space."""

_NEWER_NAMES = {"max_tokens": "max_completion_tokens"}
"""Parameters that have two names; where both are given, hosts go by the newer one."""
_OLDER_NAMES = {newer: name for name, newer in _NEWER_NAMES.items()}

_JSON = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def canonical_params(params: Mapping[str, Any]) -> str:
    """Return the answer-changing parameters as JSON; absent, empty and default are one value.

    Raises:
        InputDataError: A value can't be written as JSON.
    """
    kept = {}
    for name in _DEFAULTS.keys() & {_OLDER_NAMES.get(name, name) for name in params}:
        newer = params.get(_NEWER_NAMES.get(name, name))
        given = params.get(name) if newer is None else newer
        if is_empty(given):
            continue
        value = _plain(given)
        if to_json(value) != _DEFAULTS[name]:
            kept[name] = value
    return to_json(kept)


def is_empty(value: Any) -> bool:
    """Return whether a value says no more than its absence; zero and false say more."""
    return value is None or (isinstance(value, str | list | tuple | Mapping) and not value)


def to_json(value: Any) -> str:
    """Return a value as JSON: names sorted, no white space, non-ASCII characters as they are.

    Raises:
        InputDataError: It can't be written as JSON, or is nested too deep.
    """
    try:
        return _JSON.encode(value)
    except (TypeError, ValueError, RecursionError):
        raise InputDataError("a part of this request can't be written as JSON") from None


def _plain(value: Any) -> Any:
    """Return a number as a float, by which 1 and 1.0 are one; an integer that none equals stays."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    try:
        number = float(value) + 0.0  # -0.0 becomes 0.0
    except OverflowError:
        return value
    return value if isinstance(value, int) and int(number) != value else number


_DEFAULTS = {name: to_json(_plain(default)) for name, default in SAMPLING_DEFAULTS.items()}
