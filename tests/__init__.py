"""Tests; a package, so that its modules can share strategies and references."""
