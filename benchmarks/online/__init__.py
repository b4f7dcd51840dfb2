"""Studies of the systems that decide at run time."""
