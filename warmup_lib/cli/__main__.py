"""Lets `python -m warmup_lib.cli` be the `warmup` command."""

from warmup_lib.cli.main import main

main(prog_name="warmup")
