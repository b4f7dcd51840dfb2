"""The quality of imported RTTs, in a few lines and as a document."""

from __future__ import annotations

from placement.analysis.data_quality import DataQuality, DoubtfulPair

Pairs = tuple[tuple[str, str], ...]


def quality_lines(quality: DataQuality, missing: Pairs) -> list[str]:
    """Return lines about missing and inconsistent RTTs; one line if there are none."""
    lines = []
    if missing:
        first = f"{missing[0][0]} → {missing[0][1]}"
        lines.append(
            f"{len(missing)} pair{'s' * (len(missing) != 1)} missing and filled in, such as {first}"
        )
    for count, pairs, words in (
        (len(quality.asymmetric), quality.asymmetric, "asymmetric"),
        (len(quality.detours), quality.detours, "slower than a detour"),
        (len(quality.faster_than_light), quality.faster_than_light, "faster than light"),
    ):
        if count:
            lines.append(f"{count} {words}, such as {_said(pairs[0])}")
    if quality.zero:
        start, end = quality.zero[0]
        words = "one building, or below the resolution of the tool"
        lines.append(f"{len(quality.zero)} of 0 ms, such as {start} → {end} ({words})")
    if not lines:
        lines = ["no pair is missing, asymmetric or slower than a detour"]
        if quality.located:
            lines[0] += ", none is faster than light"
    if not quality.located:
        lines.append("no coordinates, so that light was not compared")
    said = [f"Quality of {quality.pairs} RTTs between sites: " + "; ".join(lines)]
    if missing or quality.doubtful:
        said.append("placement explain PLAN --doubt 20 shows whether these pairs matter")
    return said


def _said(pair: DoubtfulPair) -> str:
    return (
        f"{pair.source} → {pair.destination} ({pair.rtt:g} ms, {pair.reason} {pair.against:.4g} ms)"
    )


def quality_document(quality: DataQuality, missing: Pairs) -> dict[str, object]:
    """Return all findings for JSON."""

    def rows(pairs: tuple[DoubtfulPair, ...]) -> list[dict[str, object]]:
        return [
            {"source": p.source, "destination": p.destination, "rtt_ms": p.rtt, "than": p.reason,
             "than_ms": p.against}
            for p in pairs
        ]  # fmt: skip

    return {
        "pairs": quality.pairs,
        "missing": [list(pair) for pair in missing],
        "zero": [list(pair) for pair in quality.zero],
        "asymmetric": rows(quality.asymmetric),
        "detours": rows(quality.detours),
        "faster_than_light": rows(quality.faster_than_light) if quality.located else None,
    }
