"""Real parsers and servers of databases."""
