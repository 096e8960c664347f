"""What a verdict derives from its findings."""

from __future__ import annotations

import pytest

from checks import Finding, Layer, Status, Verdict


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
    assert Verdict(0, tuple(map(finding, statuses))).overall_pass is passes


def test_rejections_and_errors_are_told_apart() -> None:
    rejected, error = finding(Status.REJECT), finding(Status.ERROR, Layer.VERIFIER)
    verdict = Verdict(3, (finding(Status.PASS), rejected, error))
    assert verdict.rejected == (rejected,)
    assert verdict.errors == (error,)


def test_a_soft_signal_never_gates() -> None:
    soft = finding(Status.REJECT, Layer.SOFT), finding(Status.ERROR, Layer.SOFT)
    verdict = Verdict(0, soft)
    assert verdict.overall_pass
    assert (verdict.rejected, verdict.errors) == ((), ())


def test_words_are_the_ones_of_the_record() -> None:
    assert [str(status) for status in Status] == ["pass", "reject", "error", "skipped"]
    assert [str(layer) for layer in Layer] == ["shape", "schema", "domain", "verifier", "soft"]
