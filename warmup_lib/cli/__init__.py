"""The `warmup` command: parses arguments, calls the pipeline, prints what came of it."""

from warmup_lib.cli.main import main

__all__ = ["main"]
