"""Problems with many clients and few sites.

client_groups        clients that use the same replica whatever is decided
grouped_tree         the tree of a leader over such groups, added up again at every node
partial_problem      a problem cut to some sites, with other clients
site_events          events of a proof on some sites, written on all
streamed_kernel      the kernel: sweeps over the RTTs where the instance has them
"""
