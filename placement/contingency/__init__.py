"""Plans that stay good after the loss of sites or domains."""
