import json
from dataclasses import replace

import pytest

from depthpde.records.protocols.protocol import (
    BaselineGate,
    Claimed,
    EvidenceKind,
    Look,
    PlannedContrast,
    StudyProtocol,
)


def a_protocol(**changes):
    values = {
        "name": "medium",
        "question": "Does one step of diffusion help?",
        "tuning_seeds": (200, 201),
        "test_seeds": (100, 101, 102, 103),
        "rates": (5e-4, 1e-3),
        "endpoints": ("accuracy", "loss"),
        "gates": (
            BaselineGate(task="text", endpoint="accuracy", least=59.4, words="a bag of bytes"),
        ),
        "contrasts": (
            PlannedContrast(variant="diffusion", against="baseline", endpoint="accuracy"),
            PlannedContrast(
                variant="diffusion",
                against="convolution",
                endpoint="accuracy",
                claimed="equivalent",
                margin=0.75,
            ),
            PlannedContrast(variant="diffusion", against="rotary", endpoint="loss"),
        ),
        "looks": (Look(seeds=2, p=0.0113), Look(seeds=4, p=0.0392)),
    }
    return StudyProtocol(**values | changes)


def test_the_digest_is_of_the_values_and_of_all_of_them():
    protocol = a_protocol()
    assert a_protocol().digest == protocol.digest
    assert StudyProtocol.from_dict(json.loads(json.dumps(protocol.to_dict()))) == protocol
    assert a_protocol(rates=(0.0005, 0.001)).digest == protocol.digest
    assert a_protocol(rates=(1, 2)).digest == a_protocol(rates=(1.0, 2.0)).digest
    others = [
        a_protocol(name="large"),
        a_protocol(question="?"),
        a_protocol(tuning_seeds=(200,)),
        a_protocol(test_seeds=(101, 100, 102, 103)),
        a_protocol(rates=(1e-3,)),
        a_protocol(endpoints=("loss", "accuracy")),
        a_protocol(gates=()),
        a_protocol(contrasts=protocol.contrasts[::-1]),
        a_protocol(looks=(Look(seeds=4, p=0.05),)),
        a_protocol(stopping="when it looks good"),
        a_protocol(tuning_share=0.4),
        a_protocol(least_tasks=1),
        a_protocol(contrasts=(replace(protocol.contrasts[0], words="It helps."),)),
    ]
    assert len({each.digest for each in [protocol, *others]}) == 14


def test_the_digest_of_a_written_protocol_stays_what_it_is():
    # A new field with a default must not change what records already say.
    assert a_protocol().digest == "4ab36ee8d926ff2d"


def test_a_record_is_what_its_config_makes_it():
    protocol = a_protocol()
    under = {"study": protocol.digest}
    found = [
        protocol.evidence(under | {"seed": 100}),
        protocol.evidence(under | {"seed": 201}),
        protocol.evidence(under | {"seed": 0}),
        protocol.evidence({"study": a_protocol(rates=(1e-3,)).digest, "seed": 100}),
        protocol.evidence({"study": None, "seed": 100}),
        protocol.evidence({"seed": 100}),
    ]
    assert [kind for kind, _ in found] == [
        EvidenceKind.CONFIRMATORY, EvidenceKind.TUNING, *[EvidenceKind.EXPLORATORY] * 4
    ]  # fmt: skip
    assert protocol.digest in found[3][1]


def test_a_look_waits_for_its_seeds_and_takes_the_first_ones():
    protocol = a_protocol()
    assert protocol.look(1) is None
    assert [protocol.look(n).p for n in (2, 3, 4, 9)] == [0.0113, 0.0113, 0.0392, 0.0392]
    assert protocol.seeds_of(protocol.look(3)) == (100, 101)
    assert protocol.seeds_of(protocol.look(4)) == protocol.test_seeds


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"test_seeds": (100, 200, 102, 103)}, r"tuning_seeds.*\[200\].*fresh"),
        ({"test_seeds": (100, 100, 102, 103)}, "each entry once"),
        ({"test_seeds": ("100", "101")}, "`test_seeds` must be a whole number.*got '100'"),
        ({"tuning_seeds": (-1,)}, "`tuning_seeds` must be a whole number of at least 0, got -1"),
        ({"rates": 1e-3}, "`rates` must be a list with at least one entry, got 0.001"),
        ({"rates": ()}, "`rates` must be a list with at least one entry"),
        ({"tuning_share": 0.0}, "`tuning_share` must lie in"),
        ({"least_tasks": 2}, "`least_tasks` must lie in"),
        ({"rates": (0.0,)}, "`rates` must lie in"),
        ({"looks": (Look(seeds=4, p=0.1), Look(seeds=2, p=0.1))}, r"more seeds.*\[4, 2\]"),
        ({"looks": (Look(seeds=2, p=0.1),)}, "all 4 test seeds, got 2"),
        ({"endpoints": ("acuracy", "loss")}, "`endpoints`.*got 'acuracy'; did you mean 'accuracy'"),
    ],
)
def test_a_protocol_that_leaves_a_choice_open_is_refused(changes, words):
    with pytest.raises(ValueError, match=words):
        a_protocol(**changes)


def test_a_test_that_cannot_pass_or_fail_is_refused():
    given = {"variant": "a", "against": "b", "endpoint": "accuracy"}
    assert PlannedContrast(**given).claimed is Claimed.GREATER
    with pytest.raises(ValueError, match="`margin` must be above 0"):
        PlannedContrast(**given, claimed="equivalent")
    with pytest.raises(ValueError, match="`against` must be another"):
        PlannedContrast(**given | {"against": "a"})
    with pytest.raises(ValueError, match="did you mean 'equivalent'"):
        PlannedContrast(**given, claimed="equivalnt", margin=1.0)
    for beyond in (["c"], "ab", ["c", "c"], ["c", "d", "e"], ["a", "b"], ["b", "a"], ["c", 3]):
        with pytest.raises(ValueError, match=r"`beyond` must be another difference.*name two"):
            PlannedContrast(**given, beyond=beyond)
    assert PlannedContrast(**given, beyond=["a", "c"]).beyond == ("a", "c")
    with pytest.raises(ValueError, match="`least` must be a finite number"):
        BaselineGate(task="t", endpoint="accuracy", least=float("nan"), words="w")
    for words in (None, " ", 3):
        with pytest.raises(ValueError, match=r"`words` must say what the gate's number is"):
            BaselineGate(task="t", endpoint="accuracy", least=59.4, words=words)
    with pytest.raises(ValueError, match=r"`p` must lie in .*, got 0.9"):
        Look(seeds=1, p=0.9)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"claimed": "equivalent", "margin": 10}, "got claimed 'equivalent', margin 10.0; its"),
        ({"claimed": "equivalent"}, "must be left out.*'escape', got claimed 'equivalent'"),
        ({"margin": 2}, "must be left out.*got margin 2.0"),
        ({"beyond": ("c", "d")}, r"must be left out.*got beyond \('c', 'd'\).*sooner"),
    ],
)
def test_a_test_of_escapes_has_a_side_and_nothing_else(changes, words):
    given = {"variant": "a", "against": "b", "endpoint": "escape"}
    assert PlannedContrast(**given).endpoint == "escape"
    with pytest.raises(ValueError, match=words):
        PlannedContrast(**given, **changes)


def test_plain_values_are_checked_key_by_key():
    values = a_protocol().to_dict()
    with pytest.raises(ValueError, match="did you mean 'rates'"):
        StudyProtocol.from_dict(values | {"ratess": []})
    with pytest.raises(ValueError, match="must have test_seeds"):
        StudyProtocol.from_dict({k: v for k, v in values.items() if k != "test_seeds"})
    with pytest.raises(ValueError, match="`looks` must be a mapping"):
        StudyProtocol.from_dict(values | {"looks": [3]})


def test_a_protocol_cannot_be_changed():
    protocol = a_protocol()
    with pytest.raises(AttributeError):
        protocol.rates = (1.0,)
    assert replace(protocol, rates=(1.0,)).digest != protocol.digest
