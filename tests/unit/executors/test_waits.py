"""Which waits in Slurm's queue have no end."""

from __future__ import annotations

import pytest

from executors.waits import in_vain, unusual


@pytest.mark.parametrize(
    "reason",
    [
        "PartitionNodeLimit",
        "PartitionTimeLimit",
        "BadConstraints",
        "DependencyNeverSatisfied",
        "InvalidAccount",
        "InvalidQOS",
        "Job's_account_not_known,_so_it_can't_use_this_partition_(acct_allows_them)",
        "Job's_account_not_permitted_to_use_this_partition_(acct_allows_them_not_us)",
        "Job's_QOS_not_permitted_to_use_this_partition_(high_allows_fast_not_normal)",
    ],
)
def test_what_no_time_changes_is_waited_for_in_vain(reason: str) -> None:
    assert in_vain(reason)
    assert unusual(reason)


@pytest.mark.parametrize(
    "reason",
    [
        "ReqNodeNotAvail,_UnavailableNodes:n1",
        "Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved_for_jobs_in_higher_priority_partitions",
        "PartitionDown",
        "JobHeldUser",
        "AssocGrpNodeLimit",
        "QOSMaxJobsPerUserLimit",
        "Licenses",
        "BeginTime",
    ],
)
def test_what_may_change_is_waited_for_and_told(reason: str) -> None:
    assert not in_vain(reason)
    assert unusual(reason)


@pytest.mark.parametrize("reason", ["", "Priority", "Resources"])
def test_that_others_go_first_is_nothing_to_tell(reason: str) -> None:
    assert not in_vain(reason)
    assert not unusual(reason)
