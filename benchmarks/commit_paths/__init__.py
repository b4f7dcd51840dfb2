"""Waits of the operations of real systems."""
