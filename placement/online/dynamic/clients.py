"""The clients: where they think copies are, and when they ask again."""

from __future__ import annotations

import numpy as np

from placement.checks import BoolArray, IntArray
from placement.online.dynamic.bloom_summaries import BloomSummary, ErrorCounter
from placement.online.dynamic.hot_set_demand import HotSetWorld
from placement.online.dynamic.vote_servers import VoteCluster, VoteSettings

__all__ = ["VotingClients"]


class VotingClients:
    """Clients, one per generator, each with its summaries and its count of errors.

    Parameters
    ----------
    world
        Preference lists, generators.
    settings
        Filters and threshold.
    """

    def __init__(self, world: HotSetWorld, settings: VoteSettings) -> None:
        self._settings = settings
        self._preferred = world.geography.preferred
        self.site: IntArray = world.generators.site
        self.refreshes = 0
        sites, objects = world.geography.count, len(world.keys)
        self.believed: BoolArray = np.zeros((len(self.site), sites, objects), dtype=bool)
        """What client c believes site s to have, shape (clients, sites, objects)."""
        self._counters = [
            ErrorCounter(settings.threshold, settings.least, settings.memory) for _ in self.site
        ]
        self._made: dict[int, BoolArray] = {}
        self._version = -1

    def note(self, requests: IntArray, errors: IntArray, cluster: VoteCluster) -> None:
        """Count a tick's requests and errors per client; refresh where that is due."""
        for client, counter in enumerate(self._counters):
            if counter.note(int(requests[client]), int(errors[client])):
                for site in self._preferred[self.site[client]]:
                    self.believed[client, site] = self._summary(site, cluster)
                counter.reset()
                self.refreshes += 1

    def _summary(self, site: int, cluster: VoteCluster) -> BoolArray:
        """The summary of a site as it is now, looked up for every object; made once a round."""
        if self._version != cluster.version:
            self._made, self._version = {}, cluster.version
        if site not in self._made:
            keys = np.flatnonzero(cluster.told[site])
            if self._settings.bloom_error == 0:
                inside = cluster.told[site].copy()
            else:
                room = max(1, round(self._settings.bloom_room * self._settings.k))
                bloom = BloomSummary(keys.tolist(), room, self._settings.bloom_error)
                inside = bloom.among(np.arange(cluster.objects))
            self._made[site] = inside
        return self._made[site]
