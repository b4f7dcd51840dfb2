"""Study: run time of quorum-store placement."""
