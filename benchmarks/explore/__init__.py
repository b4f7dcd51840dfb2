"""Time of an answer of the explorer, in a real browser."""
