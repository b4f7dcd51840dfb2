"""Put what a benchmark printed into a page of the documentation."""

from __future__ import annotations

from pathlib import Path

__all__ = ["put_between"]


def put_between(page: Path, begin: str, end: str, text: str) -> None:
    """Replace what stands on a page between a mark, which occurs once, and the next end mark."""
    before, rest = page.read_text(encoding="utf-8").split(begin)
    after = rest.split(end, maxsplit=1)[1]
    page.write_text(f"{before}{begin}{text}\n{end}{after}", encoding="utf-8")
