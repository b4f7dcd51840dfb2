"""Explorer: questions, server, page."""
