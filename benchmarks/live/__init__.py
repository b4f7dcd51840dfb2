"""Real servers under an emulated wide-area network, held against the model."""
