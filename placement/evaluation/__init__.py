"""What a configuration costs: the score (Eq. 1), objectives, voters, breakdowns, losses."""
