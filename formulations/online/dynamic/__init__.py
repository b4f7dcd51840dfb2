"""Exact dynamic replication: two mixed-integer programs, a Lagrangean relaxation, clairvoyance."""
