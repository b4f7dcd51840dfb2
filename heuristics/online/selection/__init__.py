"""C3 and the policies of its comparison."""
