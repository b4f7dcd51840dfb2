"""Study: plans of fleets that share capacity."""
