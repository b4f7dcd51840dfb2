"""Systems of databases: read, lint, evaluate, write, compare."""
