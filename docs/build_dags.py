"""Writes docs/dags.md from the DAG files' docstrings; `--check` only says whether it is current."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "dags.md"
HEAD = """# The DAGs

Made from the docstrings of the files in `dags/`, which the Airflow UI shows too. To change this
page, change those and run `python docs/build_dags.py`.
"""


def page(folder: Path) -> str:
    """Return the page: one section a DAG file, which is named like its DAG."""
    sections = []
    for file in sorted(folder.glob("*.py")):
        text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8")))
        if not text:
            raise SystemExit(f"{file} has no docstring")
        sections.append(f"## `{file.stem}`\n\n{text}\n")
    return "\n".join([HEAD, *sections])


def main() -> None:
    """Write the page, or fail where it is not current."""
    text = page(ROOT / "dags")
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8")
    elif not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != text:
        raise SystemExit("docs/dags.md is not current: run `python docs/build_dags.py`")


if __name__ == "__main__":
    main()
