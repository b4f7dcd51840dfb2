"""Texts of measures and limits: what they mean, that they print as they read, what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.errors import InputError
from placement.measures import (
    After,
    Limit,
    Measure,
    MeasureKind,
    mean,
    percentile,
    read_limit,
    read_measure,
    slowest_client,
    within,
)
from tests.effort import examples

TEXTS = {
    "mean": mean(),
    "p99(writes)": percentile(99, "writes"),
    "p99.9": Measure(MeasureKind.PERCENTILE, 0.999),
    "mean(reads, clients in continent:EU)": mean("reads", "continent:EU"),
    "p99(client frankfurt)": percentile(99, clients="frankfurt"),
    "mean after the loss of any region": mean(after="any region"),
    "mean after the loss of any two sites": Measure(MeasureKind.MEAN, after=After("site", 2)),
    "mean after the loss of eu-west-1": mean(after="eu-west-1"),
    "mean over outages": Measure(MeasureKind.MEAN, over_outages=True),
    "within 100 ms": within(100),
    "slowest client": slowest_client(),
    "slowest client(single_group)": slowest_client("single_group"),
    "cost": Measure(MeasureKind.COST),
    "changes": Measure(MeasureKind.CHANGES),
    "copied GB": Measure(MeasureKind.COPIED),
    "replicas": Measure(MeasureKind.REPLICAS),
    'mean(client "New York")': mean(clients="New York"),
    "mean after the loss of any region, the leader may move, clients move": Measure(
        MeasureKind.MEAN, after=After("region", leader_moves=True, clients_move=True)
    ),
    "p50 after the loss of any region, the leader may move": Measure(
        MeasureKind.PERCENTILE, 0.5, after=After("region", leader_moves=True)
    ),
}


@pytest.mark.parametrize("text", TEXTS)
def test_texts_are_read_and_printed(text: str) -> None:
    assert read_measure(text) == TEXTS[text]
    assert str(TEXTS[text]) == text


@pytest.mark.parametrize(
    ("text", "bound", "said"),
    [
        ("p99(writes)<=150ms", 150.0, "p99(writes) <= 150 ms"),
        ("mean <= 1,000.5 ms", 1000.5, "mean <= 1000.5 ms"),
        ("within 100 ms >= 95 %", 0.95, "within 100 ms >= 95 %"),
        ("within 1,500 ms ≥ 0.999", 0.999, "within 1,500 ms >= 99.9 %"),
        ("cost <= 4000", 4000.0, "cost <= 4,000"),
        ("copied GB <= 50 GB", 50.0, "copied GB <= 50"),
        ("replicas ≤ 5", 5.0, "replicas <= 5"),
    ],
)
def test_limits_are_read_and_printed(text: str, bound: float, said: str) -> None:
    limit = read_limit(text)
    assert limit.bound == bound
    assert str(limit) == said
    assert read_limit(said) == limit


LETTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0") | st.sampled_from(
    '"\\,()<='
)
NAMES = st.text(LETTERS, min_size=1, max_size=6).filter(lambda name: bool(name.strip()))
DOMAINS = st.tuples(NAMES, NAMES).map(":".join)
LOSSES = st.one_of(
    st.builds(
        After,
        NAMES,
        st.integers(1, 2),
        leader_moves=st.booleans(),
        clients_move=st.booleans(),
    ),
    st.builds(After, named=NAMES, leader_moves=st.booleans()),
)
STAY = LOSSES.filter(lambda loss: not loss.clients_move)
PARTS = {
    "operations": st.lists(NAMES, max_size=2).map(tuple),
    "clients": st.lists(NAMES | DOMAINS, max_size=2).map(tuple),
}
MEASURES = st.one_of(
    st.builds(Measure, st.just(MeasureKind.MEAN), after=st.none() | LOSSES, **PARTS),
    st.builds(Measure, st.just(MeasureKind.MEAN), over_outages=st.booleans(), **PARTS),
    st.builds(
        Measure,
        st.just(MeasureKind.PERCENTILE),
        st.floats(0, 1, exclude_min=True),
        after=st.none() | STAY,
        **PARTS,
    ),
    st.builds(
        Measure,
        st.just(MeasureKind.WITHIN),
        st.floats(0, 1e12, exclude_min=True),
        after=st.none() | STAY,
        **PARTS,
    ),
    st.builds(Measure, st.just(MeasureKind.SLOWEST), **PARTS),
    st.sampled_from(["cost", "changes", "copied", "replicas"]).map(
        lambda kind: Measure(MeasureKind(kind))
    ),
)


@settings(max_examples=examples(300), deadline=None)
@given(MEASURES, st.floats(0, 1), st.floats(0, 1e9))
def test_every_measure_and_limit_prints_the_text_that_reads_as_it(
    measure: Measure, share: float, most: float
) -> None:
    assert read_measure(str(measure)) == measure
    limit = Limit(measure, least=share) if measure.share else Limit(measure, most=most)
    assert read_limit(str(limit)) == limit


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("p99 <= 150", "150 ms"),
        ("p99 <= 1.5 s", "1,500 ms"),
        ("mean <= 95 %", "95 ms"),
        ("within 100 ms >= 150 ms", "a share"),
        ("within 100 ms >= 95", "95 %"),
        ("within 100 ms >= 101 %", "<= 1"),
        ("within 100 >= 95 %", "within 100 ms"),
        ("within 100 ms <= 95 %", "other way"),
        ("mean >= 5 ms", "other way"),
        ("cost <= 5 ms", "unit 'ms'"),
        ("cost <= ", "no number"),
        ("cost < 5", "no limit"),
        ("", "keep"),
        ("maen <= 5 ms", "'mean'"),
        ("p0 <= 5 ms", "p above 0"),
        ("p101 <= 5 ms", "at most 100"),
        ("mean(reads <= 5 ms", ","),
        ("mean() <= 5 ms", "reads, writes"),
        ("mean(clients in EU) <= 5 ms", "LEVEL:DOMAIN"),
        ("mean after the loss <= 5 ms", "cannot be read"),
        ("mean soon <= 5 ms", "'soon'"),
        ("cost(reads) <= 5", "is not about some operations"),
        ("cost after the loss of any region <= 5", "not taken after a loss"),
        ("slowest client after the loss of any site <= 5 ms", "not taken after a loss"),
        ("p99 over outages <= 5 ms", "not weighted"),
        ("p99 after the loss of any site, clients move <= 5 ms", "where clients move"),
        ("mean <= -5 ms", "no number"),
        ("mean <= nan ms", "no number"),
    ],
)
def test_what_cannot_be_read_is_named(text: str, part: str) -> None:
    with pytest.raises(InputError) as caught:
        read_limit(text)
    assert part in str(caught.value)


def test_limits_from_python() -> None:
    assert (mean("reads") <= 40) == read_limit("mean(reads) <= 40 ms")
    assert (within(100) >= 0.95) == read_limit("within 100 ms >= 95 %")
    with pytest.raises(InputError, match="largest value"):
        _ = mean() >= 3
    with pytest.raises(InputError, match="least share"):
        _ = within(100) <= 0.95
