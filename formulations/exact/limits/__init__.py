"""Limits in the method ``exact``: a threshold search with every limit as a further scenario."""
