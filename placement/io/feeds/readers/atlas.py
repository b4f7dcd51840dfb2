"""Results of RIPE Atlas.

Results of ping measurements, a JSON list or an object a line. A probe is named by its number;
--site-of 6042=frankfurt gives it a site.
"""

from __future__ import annotations

from placement.errors import refused
from placement.io.feeds.pair_samples import PairSamples
from placement.io.feeds.registry import Content, Feed, FeedRequest, RttReading


def _is_atlas(content: Content) -> bool:
    one = content.objects[:1]
    return bool(one) and {"prb_id", "msm_id"} <= set(one[0])


def _read_atlas(content: Content, request: FeedRequest) -> RttReading:
    found = PairSamples(content.source)
    for i, one in enumerate(content.objects):
        place = f"{content.source}: [{i}]"
        if one.get("type", "ping") != "ping":
            words = "not a ping of RIPE Atlas"
            raise refused(place, "type", words, one.get("type"), "results of ping measurements")
        start = request.measured_from or str(one.get("prb_id", ""))
        end = str(one.get("dst_name") or one.get("dst_addr") or "")
        run = found.probe(start, end, place, run=True)
        packets = one.get("result")
        for packet in packets if isinstance(packets, list) else []:
            if not isinstance(packet, dict) or packet.get("rtt") is None:
                continue
            if packet.get("dup"):
                found.skip("duplicate")
            else:
                found.answer(start, end, str(packet["rtt"]), place)
        sent, received = one.get("sent"), one.get("rcvd")
        if isinstance(sent, int) and isinstance(received, int):
            average = one.get("avg")
            told = average is not None and received > 0 and not run.samples
            texts = (str(average),) if told else ("0",) * bool(run.samples)
            found.summary(start, end, (sent, received), texts, place)
    found.notes.append("sources are the numbers of probes")
    return found.reading("RIPE Atlas")


FEED = Feed(
    "atlas", "ping results of RIPE Atlas (JSON)", _is_atlas, _read_atlas,
    notes="the source is the number of the probe: --site-of 6042=frankfurt names it",
)  # fmt: skip
