"""Policies of systems that decide at run time: those of the papers, and what they compare with."""
