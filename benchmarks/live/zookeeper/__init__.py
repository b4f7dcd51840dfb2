"""ZooKeeper on the network."""
