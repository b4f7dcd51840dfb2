"""Study: how well modelled RTTs stand for measured ones."""
