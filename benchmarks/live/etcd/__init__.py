"""etcd on the network: clusters, clients, studies, the page."""
