"""Reasons why no configuration obeys the rules, in numbers, before any search."""

from __future__ import annotations

from placement.quorumstore.problem import QuorumProblem


def structural_reasons(
    problem: QuorumProblem,
    replicas: int | None = None,
    read: int | None = None,
    write: int | None = None,
) -> tuple[str, ...]:
    """Rules on N, R, W and regions that cannot hold together, one sentence each.

    Parameters
    ----------
    problem
        The question.
    replicas, read, write
        N, R, W to judge in place of those of the rules.

    Returns
    -------
    Empty when counting finds nothing wrong. It is complete: without a reason some replica set
    obeys all of these rules (bounds on latency or cost are another matter).
    """
    rules, sites = problem.rules, len(problem.sites)
    failures = rules.failures
    size = rules.replicas if replicas is None else replicas
    reading = rules.read_quorum if read is None else read
    writing = rules.write_quorum if write is None else write
    found = []

    if size is not None and size > sites:
        found.append(f"N = {size} replicas were asked for but there are {sites} sites")
    smallest = 2 * failures + 1
    given = "N" if size is not None else "N_max"
    largest = min(sites, rules.max_replicas) if size is None else size
    if largest < smallest:
        limit = (
            f"{given} = {largest}"
            if largest == (rules.max_replicas if size is None else size)
            else f"only {sites} sites exist, so N <= {sites}"
        )
        found.append(
            f"{limit}, but with F = {failures} the quorums need R, W <= N − {failures} to survive "
            f"and R + W >= N + 1 to intersect, which takes N >= {smallest}"
        )
    for letter, quorum in (("R", reading), ("W", writing)):
        if quorum is not None and quorum > largest - failures:
            found.append(
                f"{letter} = {quorum}, but of {given} = {largest} replicas only "
                f"{max(0, largest - failures)} survive the loss of {failures}"
            )
    if size is not None and reading is not None and writing is not None:
        if reading + writing < size + 1:
            found.append(
                f"R + W = {reading} + {writing} = {reading + writing}, but two quorums out of "
                f"N = {size} replicas are sure to intersect only if R + W >= {size + 1}"
            )
    elif size is not None and not found:
        for letter, other, quorum in (("R", "W", reading), ("W", "R", writing)):
            if quorum is not None and size + 1 - quorum > size - failures:
                found.append(
                    f"{letter} = {quorum} of N = {size} needs {other} >= {size + 1 - quorum} to "
                    f"intersect, but only {size - failures} replicas survive the loss of {failures}"
                )
    elif reading is not None and writing is not None and not found:
        if reading + writing - 1 < max(reading, writing) + failures:
            found.append(
                f"R = {reading} and W = {writing} intersect only for N <= {reading + writing - 1}, "
                f"and survive the loss of {failures} only for "
                f"N >= {max(reading, writing) + failures}"
            )
    elif size is None and not found:
        for letter, quorum in (("R", reading), ("W", writing)):
            if quorum is not None and quorum < failures + 1:
                found.append(
                    f"{letter} = {quorum}, but R + W >= N + 1 with the other quorum "
                    f"<= N − {failures} takes {letter} >= {failures + 1}"
                )
    if found:
        return tuple(found)
    if not problem.pairs:
        return (
            f"no N, R, W with {given} = {largest} obeys both R + W >= N + 1 and "
            f"R, W <= N − {failures} under the quorums that are fixed",
        )
    return _regional_reasons(problem, size, reading, writing)


def _regional_reasons(
    problem: QuorumProblem, size: int | None, reading: int | None, writing: int | None
) -> tuple[str, ...]:
    """Return whether the regions leave room for N replicas."""
    members: dict[int, int] = {}
    for label in problem.region_index.tolist():
        members[label] = members.get(label, 0) + 1
    sentences = []
    pairs = (
        ((size, reading, writing),)
        if size is not None and reading is not None and writing is not None
        else problem.pairs
    )
    for total, read, write in pairs:
        cap = problem.region_cap(total, max(read, write))
        room = sum(min(cap, count) for count in members.values())
        if room >= total:
            return ()
        sentences.append(
            f"N = {total}, R = {read}, W = {write}: at most {cap} replicas may share a region, and "
            f"{len(members)} regions then hold at most {room} of the {total}"
        )
    return tuple(sentences)
