"""Configuration becomes Parsl's, and nothing is started by it."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from parsl.executors import HighThroughputExecutor, ThreadPoolExecutor
from pydantic import TypeAdapter, ValidationError

from executors.config import ExecutorConfig, LocalConfig, ThreadsConfig
from executors.sites import Around, parsl_config, parsl_executor, parsl_label

CONFIGS: dict[str, ExecutorConfig] = {
    "quick": ThreadsConfig(kind="threads", workers=3),
    "default": LocalConfig(kind="local", workers=4),
}


LOCAL = LocalConfig(kind="local")
AROUND = Around(4711, Path("/run"), Path("/run/parsl"))


@pytest.fixture
def local() -> HighThroughputExecutor:
    executor = parsl_config(CONFIGS, AROUND).executors[1]
    assert isinstance(executor, HighThroughputExecutor)
    return executor


def test_the_kernel_neither_retries_nor_remembers_nor_scales_nor_reports() -> None:
    config = parsl_config(CONFIGS, AROUND)
    assert config.run_dir == "/run/parsl"
    assert config.retries == 0
    assert config.memoizer is None
    assert config.strategy == "none"
    assert config.usage_tracking == 0
    assert config.monitoring is None


def test_each_label_gets_the_executor_of_its_kind() -> None:
    quick, default = parsl_config(CONFIGS, AROUND).executors
    assert isinstance(quick, ThreadPoolExecutor)
    assert (quick.label, quick.max_threads) == ("quick", 3)
    assert isinstance(default, HighThroughputExecutor)
    assert default.label == "default"


def test_a_local_pool_is_encrypted_and_speaks_on_loopback_only(
    local: HighThroughputExecutor,
) -> None:
    assert local.encrypted
    assert (local.address, local.loopback_address) == ("127.0.0.1", "127.0.0.1")
    assert local.all_addresses == {"127.0.0.1"}, "else Parsl asks the internet for its own"


def test_as_many_workers_start_as_configured_whatever_the_number_of_cores(
    local: HighThroughputExecutor,
) -> None:
    assert local.max_workers_per_node == 4
    assert local.cores_per_worker * 512 <= 1


def test_one_block_is_asked_for_and_parsl_never_polls_it(local: HighThroughputExecutor) -> None:
    assert local.provider is not None
    assert (local.provider.init_blocks, local.provider.max_blocks) == (1, 1)
    assert local.status_polling_interval == 0


def test_programs_of_parsl_are_started_by_this_interpreter_under_a_lifeline(
    local: HighThroughputExecutor,
) -> None:
    interpreter, script, driver, module = local.interchange_launch_cmd
    assert interpreter == sys.executable
    assert Path(script).name == "lifeline.py"
    assert (driver, module) == ("4711", "parsl.executors.high_throughput.interchange")


@pytest.mark.parametrize("label", ["default", "it's {mine}", "a b", "ü"])
def test_the_launch_command_survives_being_formatted_twice(label: str) -> None:
    executor: Any = parsl_executor(label, parsl_label(label), LOCAL, AROUND)
    executor.cert_dir, executor.logconf_path = "/run {x} it's/certificates", "/run {x}/log"
    executor.worker_port = 55000
    executor.run_dir = "/run {x} it's"
    executor.initialize_scaling()
    words = shlex.split(executor._get_launch_command("0"))
    folder = parsl_label(label)
    assert words[0] == sys.executable
    assert words[words.index("--cert_dir") + 1] == f"./{folder}/certificates"
    assert f"--logdir=./{folder}" in words
    assert "--max_workers_per_node=2" in words
    assert "--block_id=0" in words
    assert not [word for word in words if "{" in word or "it's" in word]


def test_a_restarted_executor_has_a_folder_of_its_own() -> None:
    assert [parsl_label("a b", generation) for generation in (0, 1)] == ["a_b", "a_b.1"]


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"kind": "slrum"}, "'threads', 'local'"),
        ({"kind": "local", "workers": 0}, "greater than or equal to 1"),
        ({"kind": "local", "workers": 513}, "less than or equal to 512"),
        ({"kind": "threads", "workers": 2.5}, "valid integer"),
        ({"kind": "threads", "workers": True}, "valid integer"),
        ({"kind": "threads", "start_timeout": "5s"}, "Extra inputs"),
        ({"kind": "local", "start_timeout": 5}, "'5': a bare number; write the unit"),
    ],
)
def test_a_wrong_executor_is_refused(config: dict[str, Any], problem: str) -> None:
    adapter: TypeAdapter[ExecutorConfig] = TypeAdapter(ExecutorConfig)
    with pytest.raises(ValidationError) as refused:
        adapter.validate_python(config)
    assert problem in str(refused.value)
