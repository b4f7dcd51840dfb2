"""One module per format of RTTs."""
