"""Studies of decisions over time: replay, leader moves, configuration moves."""
