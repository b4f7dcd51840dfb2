"""Figures of the paper by formula, and the formulas by simulation."""

import numpy as np
import pytest

from heuristics.online.dynamic.copy_choices import popular_lists, run_votes
from placement.errors import InputError
from placement.online import spawn_streams
from placement.online.dynamic import hot_set_world, six_sites
from placement.online.dynamic.vote_counting import (
    CopySet,
    replicas_conservative,
    replicas_exact,
)
from placement.online.dynamic.vote_simulator import hot_sets


def test_published_counts():
    assert replicas_conservative(10_000, 0.02, 3) == pytest.approx(10_600)


@pytest.mark.parametrize("grace", [1, 2, 3, 5])
def test_the_grace_formula_is_one_round_too_careful(grace):
    """Replacing λ·k keys for good each round holds k·(1 + λ·(g − 1)) copies, not Eq. 2."""
    k, turnover, rounds = 50, 0.1, 30
    new = int(k * turnover)
    copies = CopySet(np.zeros((1, k + new * rounds), dtype=bool), grace)
    for turn in range(rounds):
        popular = np.zeros((1, k + new * rounds), dtype=bool)
        popular[0, turn * new : turn * new + k] = True
        copies.create(popular)
        copies.judge(popular)
    held = copies.active.sum()
    assert held == pytest.approx(replicas_exact(k, turnover, grace))
    assert replicas_conservative(k, turnover, grace) - held == pytest.approx(turnover * k)
    if grace == 1:
        assert held == k  # no grace, nothing beyond the list
    with pytest.raises(InputError):
        replicas_exact(k, turnover, 0)


def test_a_restart_takes_a_twelfth_of_the_hot_pairs():
    """8.3 % ± 1.5 of what was identified is hot no longer, on the mean of all twelve."""
    drops, changed = [], []
    for seed in (1, 2):
        world = hot_set_world(six_sites(), 4000, spawn_streams(seed, ("ring", "demand")))
        problem = world.problem(200)
        run = run_votes(problem, rounds=20)
        listed = popular_lists(problem, run.copies)
        before = hot_sets(world.generators, problem.static, 200)
        rng = np.random.default_rng(seed)
        for generator in range(12):
            after = hot_sets(world.generators.restarted(generator, rng), problem.static, 200)
            drops.append(1 - (listed & after).sum() / (listed & before).sum())
            changed.append(1 - (before & after).sum() / before.sum())
    assert np.mean(drops) == pytest.approx(0.083, abs=0.015)
    assert np.mean(changed) == pytest.approx(1 / 12, abs=0.01)
