"""Size, demand and ranges of RTT of an instance, as labels and values for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from placement.model.instance import Instance


def instance_facts(instance: Instance) -> list[tuple[str, str]]:
    """Return name, size, demand and ranges of RTT of an instance as labels and values."""
    from placement.text.text_tables import number_text

    between = instance.site_rtt[..., ~np.eye(len(instance.sites), dtype=bool)]
    facts = [
        ("Instance", instance.name),
        (
            "Size",
            ", ".join(
                f"{count} {word}{'' if count == 1 else 's'}"
                for count, word in (
                    (len(instance.sites), "site"),
                    (len(instance.clients), "client"),
                    (len(instance.operations), "operation"),
                    (len(instance.intervals), "interval"),
                )
            ),
        ),
        ("Demand", f"{number_text(float(instance.counts.sum()), 0)} operations in all"),
        ("Client RTT", _range(instance.client_rtt.ravel())),
        ("Site RTT", _range(between.ravel()) if between.size else "one site only"),
    ]
    if instance.protocol is not None:
        facts.append(("Protocol", str(instance.protocol)))
    if instance.varying_rtt:
        facts.append(("", "RTTs differ per interval"))
    if instance.intervals and len(instance.intervals) > 1:
        facts.append(("Intervals", f"{instance.intervals[0]} to {instance.intervals[-1]}"))
    if instance.prices is not None:
        storage = instance.prices.storage
        facts.append(
            (
                "Prices",
                f"{number_text(float(storage.min()))} to {number_text(float(storage.max()))} "
                f"{instance.prices.currency} per replica",
            )
        )
    facts.append(("Fingerprint", instance.fingerprint[:16]))
    return facts


def _range(values: object) -> str:
    from placement.text.text_tables import number_text

    low, middle, high = (float(x) for x in np.quantile(np.asarray(values), [0.0, 0.5, 1.0]))
    return f"{number_text(low)} to {number_text(high)} ms, median {number_text(middle)} ms"
