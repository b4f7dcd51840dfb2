"""The sites that a bound adds to a state."""
