"""Pages as vLLM 0.32 writes them, shortened, and pages that lack what is looked for."""

from __future__ import annotations

import pytest

from warmup_lib.targets.metrics import CacheSize, Load, cache_dtype, cache_size, epoch, load

CREATED = (
    'vllm:prefix_cache_hits_created{engine="0",model_name="m"} 1.7959748662726421e+09\n'
    'vllm:prompt_tokens_created{engine="0",model_name="m"} 1.7959748662720e+09\n'
    'http_requests_created{handler="/tokenize"} 1.79597490e+09\n'
)


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("process_start_time_seconds 1.79597484112e+09\n" + CREATED, "1.79597484112e+09"),
        ('process_start_time_seconds{pod="a"} 17.5\n', "17.5"),
        (CREATED, "1795974866.272"),
        ("# HELP x_created when\n", "unknown"),
        ("foo_created 1e5e5\nfoo_created NaN\n" + CREATED, "1795974866.272"),
        *(
            (f"process_start_time_seconds {odd}\nfoo_created 5\n", "5.000")
            for odd in ("NaN", "+Inf", "-1", "foo", "1e308")
        ),
        ("", "unknown"),
    ],
)
def test_epoch(page: str, expected: str) -> None:
    assert epoch(page) == expected


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ('block_size="32",kv_cache_size_tokens="46592",num_gpu_blocks="1456"', (32, 46592)),
        ('block_size="16",kv_cache_size_tokens="None",num_gpu_blocks="100"', (16, 1600)),
        ('block_size="None",num_gpu_blocks="None"', (16, None)),
        ('block_size="65536",num_gpu_blocks="2"', (65536, 131072)),
        *(
            (f'block_size="{odd}",num_gpu_blocks="10"', (16, 160))
            for odd in ("0", "\u00b2", "-1", "1.5", "65537", "1000000000", "9" * 5000)
        ),
        ('block_size="32",kv_cache_size_tokens="\u00b2",num_gpu_blocks="\u00b2"', (32, None)),
    ],
)
def test_cache_size(labels: str, expected: tuple[int, int | None]) -> None:
    page = f'# TYPE x gauge\nvllm:cache_config_info{{cache_dtype="auto",{labels}}} 1.0\n'
    assert cache_size(page) == CacheSize(*expected)


def test_no_cache_config() -> None:
    assert cache_size("sglang:token_usage 0.1\n") == CacheSize(16, None)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ('cache_dtype="auto"', None),
        ('cache_dtype="fp8_e4m3"', "fp8_e4m3"),
        ('block_size="16"', None),
    ],
)
def test_cache_dtype(labels: str, expected: str | None) -> None:
    assert cache_dtype(f"vllm:cache_config_info{{{labels}}} 1.0\n") == expected


def test_load_is_summed_over_engines() -> None:
    lines = [
        "# TYPE vllm:num_requests_waiting gauge",
        'vllm:num_requests_waiting{engine="0",model_name="m"} 3.0',
        'vllm:num_requests_waiting{engine="1",model_name="m"} 2.0',
        'vllm:num_requests_waiting_by_reason{engine="0",reason="capacity"} 3.0',
        'vllm:time_to_first_token_seconds_bucket{engine="0",le="0.1"} 9.0',
        'vllm:time_to_first_token_seconds_count{engine="0",model_name="m"} 12.0',
        'vllm:time_to_first_token_seconds_sum{engine="0",model_name="m"} 1.5',
        'vllm:time_to_first_token_seconds_count{engine="1",model_name="m"} 1.2e+1',
        'vllm:time_to_first_token_seconds_sum{engine="1",model_name="m"} 2.25',
    ]
    assert load("\n".join(lines) + "\n") == Load(5, 24, 3.75)


def test_a_page_without_a_queue_tells_no_load() -> None:
    assert load(CREATED) is None
    assert load("vllm:num_requests_waiting 1.0\n") == Load(1, 0, 0.0)


@pytest.mark.parametrize("odd", ["NaN", "+Inf", "-Inf", "-1", "foo", "1e308"])
def test_what_is_no_count_is_not_said(odd: str) -> None:
    waiting = "vllm:num_requests_waiting"
    assert load(f"{waiting} {odd}\n") is None
    assert load(f'{waiting}{{engine="0"}} {odd}\n{waiting}{{engine="1"}} 2.0\n') == Load(2, 0, 0.0)
    counts = "".join(
        f"vllm:time_to_first_token_seconds_{part} {odd}\n" for part in ("count", "sum")
    )
    assert load(f"{waiting} 1.0\n{counts}") == Load(1, 0, 0.0)
