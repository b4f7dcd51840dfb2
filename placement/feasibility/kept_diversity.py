"""Failure diversity that a present deployment has, as rules that a new plan keeps.

Sharov et al. (PVLDB 8(12), 2015, section 6.3) first analyse the level of failure diversity that a
database preserves today, and only suggest configurations that keep it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from placement.model.constraints import Diversity
from placement.model.instance import Instance


def kept_diversity(
    instance: Instance,
    voters: Iterable[str],
    replicas: Iterable[str],
    levels: Sequence[str] | None = None,
) -> tuple[Diversity, ...]:
    """Return the rules that keep the diversity of a deployment at every level.

    Parameters
    ----------
    instance
        The sites and their failure domains.
    voters, replicas
        Sites of the deployment by name.
    levels
        Failure-domain levels; None: all of the instance but the sites themselves.

    Returns
    -------
    tuple of Diversity
        For every level: at most as many voters per domain as the fullest domain has today, so that
        every loss of a domain that leaves a quorum today leaves one afterwards; and replicas in
        at least as many domains as today. Rules that forbid nothing are left out.

    Raises
    ------
    InputError
        For an unknown site or level.
    """
    known = [level for level in instance.levels if level != "site"] if levels is None else levels
    voting = instance.site_indices(voters, "voters").tolist()
    held = instance.site_indices(replicas, "replicas").tolist()
    rules: list[Diversity] = []
    for level in known:
        labels = instance.labels(level)
        # A site without a domain fails alone.
        domain = [site if label is None else label for site, label in enumerate(labels)]
        fullest = max(Counter(domain[site] for site in voting).values(), default=0)
        if 0 < fullest < len(voting):
            rules.append(Diversity(level, "voters", cap=fullest))
        distinct = len({domain[site] for site in held})
        if distinct > 1:
            rules.append(Diversity(level, "replicas", min_domains=distinct))
    return tuple(rules)
