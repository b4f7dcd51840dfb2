"""C3 and the policies it is compared with."""
