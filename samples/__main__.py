"""The command line of the generator: `python -m samples --out DIR`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from samples.folder import Folder
from samples.generate import generate
from samples.parameters import DAYS, SEED
from samples.shipped import Shipped


@click.command()
@click.option("--out", required=True, type=click.Path(path_type=Path), help="folder to write to")
@click.option(
    "--source",
    type=click.Choice(["shipped", "folder"]),
    default="shipped",
    show_default=True,
    help="our own texts, or real questions from the data folder",
)
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    envvar="WARMUP_DATA",
    help="the data folder, for --source folder [env: WARMUP_DATA]",
)
@click.option("--seed", type=int, default=SEED, show_default=True)
@click.option("--days", type=click.IntRange(2), default=DAYS, show_default=True)
@click.option("--scale", type=click.FloatRange(0, min_open=True), default=1.0, show_default=True)
def main(out: Path, source: str, data: Path | None, seed: int, days: int, scale: float) -> None:
    """Write a composed request log of DAYS days to OUT, with documents and a manifest."""
    if source == "folder" and data is None:
        raise click.UsageError(
            "--source folder needs --data DIR, or WARMUP_DATA to name the folder"
        )
    texts = Folder(data) if source == "folder" and data else Shipped()
    manifest = generate(out, texts, seed=seed, days=days, scale=scale)
    click.echo(json.dumps({"composed": True, "out": str(out), **manifest["counts"]}))


if __name__ == "__main__":
    main()
