"""An instance as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placement.text.text_tables import (
    escape,
    facts,
    number_text,
    page_width,
    section,
    sentences,
    table,
    wrap,
)

if TYPE_CHECKING:
    from placement.model.instance import Instance
    from placement.model.operations import Operation

_MOST_LEVELS = 6


def instance_text(instance: Instance, *, most: int = 20) -> str:
    """Return the contents of an instance as text.

    Parameters
    ----------
    instance
        The instance to describe.
    most
        Most clients to list, by demand; sites are all listed.
    """
    from placement.model.instance_facts import instance_facts  # loads NumPy

    sections = [
        facts(instance_facts(instance)),
        section("Sites", _sites(instance)),
        section("Clients by demand", _demand(instance, most)),
        section("Operations", _mix(instance)),
    ]
    sections.extend(sentences("Where the numbers come from", instance.provenance))
    return "\n\n".join(sections)


def _sites(instance: Instance) -> str:
    levels = list(instance.domains)[:_MOST_LEVELS]
    hidden = len(instance.domains) - len(levels)
    body = table(
        ["site", *levels],
        [
            [site, *(instance.domains[level][s] or "–" for level in levels)]
            for s, site in enumerate(instance.sites)
        ],
        indent="  ",
    )
    return body + (f"\n  … and {hidden} more failure-domain levels" if hidden else "")


def _demand(instance: Instance, most: int) -> str:
    import numpy as np

    issued = instance.counts.sum(axis=(0, 2))
    order = np.argsort(-issued, kind="stable")
    total = float(issued.sum())
    last = instance.client_rtt if instance.client_rtt.ndim == 2 else instance.client_rtt[-1]
    rows = []
    for c in order[:most]:
        near = int(last[c].argmin())
        rows.append(
            [
                instance.clients[c],
                number_text(float(issued[c]), 0),
                f"{100 * float(issued[c]) / total:.2f} %" if total else "–",
                instance.sites[near],
                number_text(float(last[c, near])),
            ]
        )
    body = table(
        ["client", "operations", "share", "closest site", "RTT ms"],
        rows,
        right=(1, 2, 4),
        indent="  ",
    )
    rest = len(order) - most
    return body + (f"\n  … and {rest} more" if rest > 0 else "")


def _beside(operation: Operation) -> str:
    """Return the waits of an operation beside its coefficients."""
    parts = [*map(str, operation.waits), *[f"{operation.constant:g} ms"] * bool(operation.constant)]
    return "; ".join(parts)


def _mix(instance: Instance) -> str:
    counts = instance.counts.sum(axis=(0, 1))
    total = float(counts.sum())
    shares = table(
        ["operation", "share", "α near", "β relay", "γ direct", "δ quorum"],
        [
            [
                operation.name,
                f"{100 * float(counts[o]) / total:.2f} %" if total else "–",
                *(f"{coefficient:g}" for coefficient in operation.coefficients),
            ]
            for o, operation in enumerate(instance.operations)
        ],
        right=(1, 2, 3, 4, 5),
        indent="  ",
    )
    # below the table, whose cells are cut at the width of the page
    beside = [
        "  "
        + wrap(f"{escape(one.name)} also takes {_beside(one)}", page_width() - 2, indent="    ")
        for one in instance.operations
        if one.has_waits
    ]
    return "\n".join([shares, *beside])
