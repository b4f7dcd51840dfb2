"""Local search over replica sets: swap neighbourhood, descents, start sets and bounds."""
