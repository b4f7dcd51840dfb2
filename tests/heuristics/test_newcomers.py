"""Costs of clients when a site joins: by definition, and the same from tables."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from heuristics.local_search.swap_neighbourhood import DirectInsertionCosts, InsertionTables
from heuristics.objective_terms import objective_terms
from placement import Problem
from tests.strategies import ALL, problems


@given(problems(kinds=ALL, max_sites=6), st.data())
def test_newcomers_take_over_who_is_closer(problem: Problem, data: st.DataObject) -> None:
    """Looked up and worked out, in turns and for leaders known and new, bit for bit."""
    terms = objective_terms(problem)
    rows, sites = terms.rank.shape
    assume(rows)
    tables, none = InsertionTables(terms), InsertionTables(terms, cells=0)
    often = np.repeat(np.arange(sites)[:: data.draw(st.integers(1, 2))], 4)
    assert isinstance(none.of(often), DirectInsertionCosts)
    assert not isinstance(tables.of(often), DirectInsertionCosts)
    for times in (1, 5):
        drawn = data.draw(st.lists(st.integers(0, sites - 1), min_size=1, max_size=4))
        leaders = np.array(drawn * times)
        seed = data.draw(st.integers(0, 2**32 - 1))
        near = np.random.default_rng(seed).integers(0, sites + 1, (len(leaders), rows), np.int32)
        looked_up = tables.of(leaders).costs_after(near)
        assert looked_up.shape == (len(leaders), rows, sites + 1)
        assert (looked_up == none.of(leaders).costs_after(near)).all()
        last = np.array([len(leaders) - 1])
        assert (tables.of(leaders).take(last).costs_after(near[last]) == looked_up[last]).all()
        assert (none.of(leaders).take(last).costs_after(near[last]) == looked_up[last]).all()
        for b, leader in enumerate(leaders.tolist()):
            summand = np.hstack([terms.summand(leader), np.zeros((rows, 1))])
            for c in range(rows):
                order = [*terms.order[c].tolist(), sites]
                for x in range(sites + 1):
                    server = order[min(int(near[b, c]), order.index(x))]
                    assert looked_up[b, c, x] == summand[c, server]
