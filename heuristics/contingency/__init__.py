"""Local search for plans that stay good after a loss."""
