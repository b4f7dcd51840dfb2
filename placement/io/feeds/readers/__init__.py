"""Readers of RTTs, a module per format."""
