import json

from depthpde.theory.claim import Check, Finding, Relation, TheoryVerdict
from depthpde.theory.record import overall, to_json


def finding(measured: float, refuting: float) -> Finding:
    def at_most_one(value: float) -> Check:
        return Check(quantity="x", predicted=1.0, measured=value, comparison=Relation.AT_MOST)

    return Finding(
        name="small",
        statement="x is small",
        equation="x ≤ 1",
        source="here",
        checks=(at_most_one(measured),),
        counterexample="a large x",
        refutation=at_most_one(refuting),
        plots=(),
    )


HOLDS, FAILS, BLIND = finding(0.5, 2.0), finding(2.0, 2.0), finding(0.5, 0.5)


def test_the_worst_verdict_is_the_verdict() -> None:
    assert overall([HOLDS, HOLDS]) is TheoryVerdict.HOLDS
    assert overall([HOLDS, BLIND]) is TheoryVerdict.BLIND
    assert overall([BLIND, FAILS, HOLDS]) is TheoryVerdict.FAILS


def test_the_same_findings_give_the_same_bytes() -> None:
    assert to_json([HOLDS, FAILS]) == to_json([finding(0.5, 2.0), finding(2.0, 2.0)])


def test_the_record_says_what_computed_it() -> None:
    record = json.loads(to_json([HOLDS]))
    assert set(record["versions"]) == {"depthpde", "python", "torch"}
    assert record["verdict"] == record["findings"][0]["verdict"] == "holds"
