"""Costs and bounds of one leader in whole numbers: exact, rounded, and over few pairs."""
