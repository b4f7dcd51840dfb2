"""Tests of the emulated network and of real servers under it."""
