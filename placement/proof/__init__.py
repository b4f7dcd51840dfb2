"""Independent checks of certificates in exact arithmetic."""
