"""Exact and clairvoyant optima of systems that decide at run time: what no policy can beat."""
