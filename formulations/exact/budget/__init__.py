"""Budgets in the method ``exact``: the threshold search with the cost as a second scenario."""
