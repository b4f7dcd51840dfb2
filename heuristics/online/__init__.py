"""Policies of systems that decide at run time: from the papers, and their references."""
