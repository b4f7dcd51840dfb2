"""Tests of quorum stores."""
