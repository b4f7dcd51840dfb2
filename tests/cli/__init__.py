"""The command line, in this process and in fresh ones."""
