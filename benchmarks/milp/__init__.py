"""Study: how strong the linear relaxations of the two MILPs are."""
