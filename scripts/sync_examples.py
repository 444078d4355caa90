"""Write the files of ``examples/`` into the page that shows them, ``docs/extending.md``.

python scripts/sync_examples.py
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]


def synced(page: str) -> str:
    """Return the page with every block that begins like an example replaced by its file."""
    for file in sorted((ROOT / "examples").glob("*.py")):
        text = file.read_text(encoding="utf-8")
        begin = page.index("```python\n" + text.splitlines()[0])
        end = page.index("\n```", begin)
        page = f"{page[:begin]}```python\n{text}```{page[end + 4 :]}"
    return page


if __name__ == "__main__":
    path = ROOT / "docs" / "extending.md"
    path.write_text(synced(path.read_text(encoding="utf-8")), encoding="utf-8")
