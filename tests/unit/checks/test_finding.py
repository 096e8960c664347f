"""What a verdict derives from its findings."""

from __future__ import annotations

import pickle

import pytest

from checks import Finding, Layer, Severity, Status, Verdict


def finding(status: Status, layer: Layer = Layer.DOMAIN) -> Finding:
    return Finding("bounds", layer, status)


@pytest.mark.parametrize(
    ("statuses", "passes"),
    [
        ([Status.PASS], True),
        ([Status.PASS, Status.SKIPPED], True),
        ([Status.PASS, Status.REJECT], False),
        ([Status.PASS, Status.ERROR], False),
        ([Status.REJECT, Status.ERROR], False),
    ],
)
def test_a_candidate_passes_when_nothing_rejected_it_and_no_check_failed(
    statuses: list[Status], passes: bool
) -> None:
    assert Verdict(tuple(map(finding, statuses))).overall_pass is passes


def test_rejections_and_errors_are_told_apart() -> None:
    rejected, error = finding(Status.REJECT), finding(Status.ERROR, Layer.VERIFIER)
    verdict = Verdict((finding(Status.PASS), rejected, error))
    assert verdict.rejected == (rejected,)
    assert verdict.errors == (error,)


def test_a_soft_signal_never_gates() -> None:
    soft = finding(Status.REJECT, Layer.SOFT), finding(Status.ERROR, Layer.SOFT)
    verdict = Verdict(soft)
    assert verdict.overall_pass
    assert (verdict.rejected, verdict.errors) == ((), ())


def test_words_are_the_ones_of_the_record() -> None:
    assert [str(status) for status in Status] == ["pass", "reject", "error", "skipped"]
    assert [str(layer) for layer in Layer] == ["shape", "schema", "domain", "verifier", "soft"]
    assert [str(severity) for severity in Severity] == ["error", "warn", "info"]


def test_the_record_is_the_one_that_is_attached_to_a_candidate() -> None:
    present = Finding("present", Layer.DOMAIN, Status.PASS, kind="not_null")
    length = Finding(
        "length", Layer.DOMAIN, Status.REJECT, "212 words, expected at most 200",
        kind="word_count_between", severity=Severity.WARN,
    )  # fmt: skip
    assert Verdict((present, length)).as_record() == {
        "overall_pass": True,
        "failed": [],
        "skipped": [],
        "outcomes": [
            {"id": "present", "type": "not_null", "severity": "error", "passed": True,
             "detail": "", "skipped": False},
            {"id": "length", "type": "word_count_between", "severity": "warn", "passed": False,
             "detail": "212 words, expected at most 200", "skipped": False},
        ],
    }  # fmt: skip


def test_what_was_waived_passes_and_what_could_not_be_checked_does_not() -> None:
    waived = Finding("waived", Layer.DOMAIN, Status.SKIPPED)
    unmade = Finding("unmade", Layer.DOMAIN, Status.SKIPPED, open=True)
    verdict = Verdict((waived, unmade))
    assert not verdict.overall_pass
    assert (verdict.failed, verdict.skipped) == (("unmade",), ("unmade",))


def test_findings_are_made_once_when_they_are_first_read() -> None:
    made: list[int] = []

    def later(status: Status) -> tuple[Finding, ...]:
        made.append(1)
        return (finding(status),)

    verdict = Verdict(later, Status.REJECT)
    assert made == []
    assert not verdict.overall_pass
    assert verdict == Verdict((finding(Status.REJECT),))
    assert made == [1]


def test_a_verdict_survives_pickling_with_its_findings() -> None:
    verdict = Verdict(lambda status: (finding(status),), Status.REJECT)
    assert pickle.loads(pickle.dumps(verdict)) == verdict
