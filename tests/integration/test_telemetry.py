"""What a run tells by OpenTelemetry: one connected tree, numbers that agree with the ledger.

And that its loss, whatever the reason, changes nothing and is said once.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

import fakeserver
import folders
import otlp
from campaign.configfile import load_config
from campaign.conventions import ATTRIBUTES, EVENTS, METRICS, SPANS
from campaign.drive import creation, drive
from campaign.events import Answered, JobStarted, TaskEnded
from campaign.ledger import read
from campaign.loop import Ending
from campaign.state import CampaignState, fold

SUPPORT = Path(__file__).parent.parent / "support"
SMALL = SUPPORT / "small_campaign"
ATTEMPT = ("campaign small", "round 1", "accept round 1", "accept.attempt round 1")
CLOCKS = 5_000_000  # nanoseconds that two ways to read a clock may differ
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


def job(run_dir: Path, folder: Path = SMALL) -> tuple[Ending, CampaignState]:
    """One job in this process: a new run, or a further job of the one there is."""
    created = None
    if not (run_dir / "ledger.jsonl").exists():
        loaded = load_config(folder)
        created = creation(loaded.config, loaded.folder)
    return asyncio.run(drive(run_dir, created))


def mortal(run_dir: Path, kind: str, nth: int, when: str) -> None:
    """A job in a process that is killed around an event."""
    argv = [sys.executable, str(SUPPORT / "mortal_driver.py"), str(run_dir), str(SMALL)]
    ran = subprocess.run([*argv, kind, str(nth), when], capture_output=True, text=True, check=False)
    assert ran.returncode == -9, ran.stderr


def about(span: Span) -> dict[str, Any]:
    return otlp.attributes(span.attributes)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a run of one job, on real executors."""
    run_dir = tmp_path_factory.mktemp("undisturbed") / "run"
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("OTEL_")]:
            patch.delenv(name)
        ending, _ = job(run_dir)
    assert ending.outcome == "done"
    return run_dir


def test_a_run_is_one_tree_from_the_campaign_to_the_workers(undisturbed: Path) -> None:
    tree = otlp.tree(undisturbed)
    assert [root.name for root in tree.roots] == ["campaign small"]
    assert tree.orphans == []
    assert len({span.trace_id for span in tree.spans.values()}) == 1
    paths = set(tree.paths)
    assert {
        (*ATTEMPT, "invoke_agent replay"),
        (*ATTEMPT, "verify stable", "worker stable"),
        (*ATTEMPT, "simulate", "worker simulation"),
        (*ATTEMPT[:3], "verify stable", "worker stable"),  # of a fallback candidate
    } <= paths
    assert {path[:2] for path in paths if len(path) > 1} == {
        ("campaign small", "round 1"),
        ("campaign small", "round 2"),
    }


def test_every_try_of_the_ledger_has_its_span_and_its_workers(undisturbed: Path) -> None:
    tree = otlp.tree(undisturbed)
    ended = [one.event for one in read(undisturbed) if isinstance(one.event, TaskEnded)]
    keys = ("simgate.task.name", "simgate.candidate", "simgate.task.try", "simgate.task.status")
    tries = [span for span in tree.spans.values() if span.name in ("simulate", "verify stable")]
    told = Counter(tuple(about(span)[key] for key in keys) for span in tries)
    assert told == Counter((one.task, one.candidate, one.attempt, one.status) for one in ended)
    for span in tries:
        (worker,) = [one for one in tree.spans.values() if one.parent_span_id == span.span_id]
        assert worker.name == f"worker {about(span)['simgate.task.name']}"
        assert about(worker)["host.name"] == os.uname().nodename
        assert about(worker)["process.pid"] not in (0, os.getpid())
        assert about(worker)["simgate.task.ranks"] == 1
        assert span.start_time_unix_nano <= worker.start_time_unix_nano + CLOCKS
        assert worker.end_time_unix_nano <= span.end_time_unix_nano + CLOCKS
        assert not worker.links


def test_the_metrics_say_what_the_ledger_says(undisturbed: Path) -> None:
    found = otlp.metrics(undisturbed)
    state = fold(read(undisturbed))
    counts = {name: number for name, number in state.dispositions().items() if number}
    assert otlp.counted(found["simgate.candidates"], "simgate.disposition") == counts
    spent = state.usage.counters["node_hours"].spent
    verifiers = state.usage.counters["verifier_node_hours"].spent
    hours = otlp.counted(found["simgate.node_hours"], "simgate.task.kind")
    assert hours == pytest.approx({"verifier": verifiers, "simulation": spent - verifiers})
    generations = otlp.counted(found["simgate.generations"], "simgate.stage")
    assert sum(generations.values()) == state.usage.counters["generations"].spent
    tries = sum(len(task.ended) for task in state.tasks.values())
    for name in ("simgate.task.duration", "simgate.task.queue.duration"):
        points = found[name].histogram.data_points
        assert sum(point.count for point in points) == tries
        assert all(point.min >= 0 for point in points)
    (gate,) = found["simgate.gate.duration"].histogram.data_points
    assert gate.count == len(state.rounds)


def test_what_the_checks_and_verifiers_said_is_told_where_it_was_said(undisturbed: Path) -> None:
    tree, told = otlp.tree(undisturbed), otlp.events(undisturbed)
    where: dict[str, set[str]] = {}
    for event in told:
        name = otlp.attributes(event.attributes)["gen_ai.evaluation.name"]
        where.setdefault(name, set()).add(tree.spans[event.span_id].name.partition(" round")[0])
    # Of a candidate, and of a batch that it left with nothing.
    assert where["stable"] == {"verify stable", "accept.attempt"}
    assert where["domain"] == where["verifiers"] == {"accept.attempt"}
    labels = {
        otlp.attributes(event.attributes).get("gen_ai.evaluation.score.label") for event in told
    }
    assert labels == {"pass", "fail"}


def test_no_name_is_used_that_is_not_documented(undisturbed: Path) -> None:
    found = otlp.spans(undisturbed)
    events = otlp.events(undisturbed)
    named = {name for span in found for name in about(span)}
    named |= {name for event in events for name in otlp.attributes(event.attributes)}
    metrics = otlp.metrics(undisturbed)
    for metric in metrics.values():
        told = [point.attributes for point in metric.sum.data_points]
        told += [point.attributes for point in metric.histogram.data_points]
        named |= {name for pairs in told for name in otlp.attributes(pairs)}
    assert {name for name in named if not name.startswith("flowgentic.")} <= set(ATTRIBUTES)
    first = {name.split()[0] for name in SPANS}
    assert {span.name.split()[0] for span in found} <= first
    assert {event.event_name for event in events} <= set(EVENTS)
    assert set(metrics) <= {metric.name for metric in METRICS}


def test_the_ledger_knows_the_span_of_each_job(undisturbed: Path) -> None:
    (started,) = [one.event for one in read(undisturbed) if isinstance(one.event, JobStarted)]
    (root,) = otlp.tree(undisturbed).roots
    assert started.traceparent.rpartition("-")[0] == otlp.traceparent(root)
    assert about(root)["simgate.job.outcome"] == "done"


JOINING = """
import os

def joins(candidate):
    return {"verdict": "pass", "metrics": {"trace": os.environ.get("TRACEPARENT", "none")}}


def bowl(candidate):
    return {"loss": candidate["x"], "trace": os.environ.get("TRACEPARENT", "none")}
"""


def joining(tmp_path: Path, **changes: Any) -> Path:
    """A campaign of one candidate whose tasks say what trace they are told to join."""
    task = {"kind": "python", "walltime": "10s"}
    folder = folders.folder(
        tmp_path / "campaign",
        rounds=1,
        batch_size=1,
        verifiers=[task | {"name": "joins", "function": "joining:joins"}],
        simulation=task | {"function": "joining:bowl"} | changes,
    )
    (folder / "joining.py").write_text(JOINING)
    return folder


def test_a_tasks_own_program_may_join_the_trace(tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    job(run_dir, joining(tmp_path))
    tree = otlp.tree(run_dir)
    ended = [one.event for one in read(run_dir) if isinstance(one.event, TaskEnded)]
    said = {one.task: one.value.get("trace") or one.value["metrics"]["trace"] for one in ended}
    for task, span in (("joins", "verify joins"), ("simulation", "simulate")):
        (found,) = tree.named(span)
        assert said[task].rpartition("-")[0] == otlp.traceparent(found)


def test_a_trace_that_the_config_names_is_the_one_joined(tmp_path: Path) -> None:
    other = f"00-{'a' * 32}-{'b' * 16}-01"
    run_dir = tmp_path / "run"
    job(run_dir, joining(tmp_path, env={"TRACEPARENT": other}))
    (ended,) = [
        one.event
        for one in read(run_dir)
        if isinstance(one.event, TaskEnded) and one.event.task == "simulation"
    ]
    assert ended.value["trace"] == other
    (worker,) = otlp.tree(run_dir).named("worker simulation")
    assert [link.span_id.hex() for link in worker.links] == ["b" * 16]


def test_a_job_that_is_killed_spoils_nothing_and_the_next_one_links_to_it(
    tmp_path: Path,
) -> None:
    run_dir = tmp_path / "run"
    mortal(run_dir, "task_ended", 2, "before")  # its result is on disk: it will be adopted
    (torn,) = (run_dir / "telemetry").glob("traces-1-*.jsonl")
    with torn.open("a") as file:
        file.write('{"resourceSpans": [{"sc')
    assert job(run_dir)[0].outcome == "done"
    first = next(one.event for one in read(run_dir) if isinstance(one.event, JobStarted))
    second = otlp.tree(run_dir, 2)
    (root,) = second.roots
    assert second.orphans == []
    assert [link.span_id.hex() for link in root.links] == [first.traceparent.split("-")[2]]
    assert torn.read_text().endswith('"sc')
    adopted = [span for span in second.spans.values() if about(span).get("simgate.task.adopted")]
    assert adopted
    for span in adopted:
        (worker,) = [one for one in second.spans.values() if one.parent_span_id == span.span_id]
        (link,) = worker.links
        assert second.path(worker)[0] == root.name
        assert link.trace_id.hex() == first.traceparent.split("-")[1]


def test_disabled_by_the_standard_variable_it_leaves_nothing(tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    code = (
        "import sys\n"
        "from campaign.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "finally: assert not [one for one in sys.modules if one.startswith('opentelemetry.sdk')]"
    )
    argv = [sys.executable, "-c", code, "run", str(joining(tmp_path)), "--run-dir", str(run_dir)]
    subprocess.run(argv, env=os.environ | {"OTEL_SDK_DISABLED": "TRUE"}, check=True)
    assert not (run_dir / "telemetry").exists()
    ended = [one.event for one in read(run_dir) if isinstance(one.event, TaskEnded)]
    assert any(one.value.get("trace") == "none" for one in ended)


def losing(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.name == "campaign.telemetry"]


def same_end(run_dir: Path, undisturbed: Path) -> bool:
    def ends(directory: Path) -> list[object]:
        state = fold(read(directory))
        return [
            (one.slot, one.disposition, one.candidate)
            for _, rounds in sorted(state.rounds.items())
            for _, one in sorted(rounds.slots.items())
        ]

    return ends(run_dir) == ends(undisturbed)


@pytest.mark.parametrize("signals", [("traces",), ("traces", "metrics", "logs")])
def test_a_full_disk_costs_the_telemetry_and_nothing_else(
    tmp_path: Path, undisturbed: Path, caplog: pytest.LogCaptureFixture, signals: tuple[str, ...]
) -> None:
    run_dir = tmp_path / "run"
    (run_dir / "telemetry").mkdir(parents=True)
    for signal in signals:
        path = run_dir / "telemetry" / f"{signal}-1-{os.getpid()}.jsonl"
        path.symlink_to("/dev/full")
    ending, _ = job(run_dir)
    assert ending.outcome == "done"
    assert same_end(run_dir, undisturbed)
    (said,) = losing(caplog)
    assert "No space left on device" in said


def test_a_folder_that_takes_no_files_costs_the_telemetry_and_nothing_else(
    tmp_path: Path, undisturbed: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    (run_dir / "telemetry").write_text("in the way")
    ending, _ = job(run_dir)
    assert ending.outcome == "done"
    assert same_end(run_dir, undisturbed)
    (said,) = losing(caplog)
    assert str(run_dir / "telemetry") in said


def test_settings_the_sdk_refuses_cost_the_telemetry_and_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "-1")
    assert job(tmp_path / "run")[0].outcome == "done"
    (said,) = losing(caplog)
    assert "schedule_delay_millis" in said


class Collector(ThreadingHTTPServer):
    """Takes what is exported, or answers ``status``."""

    def __init__(self, status: int = 200) -> None:
        self.status = status
        self.taken: dict[str, list[bytes]] = {}
        super().__init__(("127.0.0.1", 0), _Taking)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Taking(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.taken.setdefault(self.path, []).append(body)
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_with_an_endpoint_the_same_goes_there_by_http(
    tmp_path: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENDPOINT, collector.url)
    run_dir = tmp_path / "run"
    job(run_dir)
    sent = [ExportTraceServiceRequest.FromString(body) for body in collector.taken["/v1/traces"]]
    ids = {
        span.span_id
        for one in sent
        for resource in one.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    }
    assert ids == set(otlp.tree(run_dir).spans)
    assert all(map(ExportMetricsServiceRequest.FromString, collector.taken["/v1/metrics"]))
    assert all(map(ExportLogsServiceRequest.FromString, collector.taken["/v1/logs"]))


def test_with_an_endpoint_for_one_signal_only_that_goes_there(
    tmp_path: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", f"{collector.url}/mine")
    job(tmp_path / "run")
    assert set(collector.taken) == {"/mine"}


def test_a_collector_that_refuses_costs_what_it_was_sent_and_nothing_else(
    tmp_path: Path,
    collector: Collector,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(ENDPOINT, collector.url)
    collector.status = 400
    run_dir = tmp_path / "run"
    assert job(run_dir)[0].outcome == "done"
    (said,) = losing(caplog)
    assert "400" in said
    assert otlp.tree(run_dir).orphans == []


@pytest.mark.parametrize(
    ("variables", "word"),
    [
        ({ENDPOINT: "http://127.0.0.1:9"}, "simgate[otlp]"),
        ({ENDPOINT: "http://127.0.0.1:9", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "http/protobuf"),
    ],
)
def test_what_cannot_export_to_the_endpoint_says_so(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    word: str,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    for module in ("trace_exporter", "metric_exporter", "_log_exporter"):
        monkeypatch.setitem(sys.modules, f"opentelemetry.exporter.otlp.proto.http.{module}", None)
    run_dir = tmp_path / "run"
    assert job(run_dir)[0].outcome == "done"
    (said,) = losing(caplog)
    assert word in said
    assert otlp.spans(run_dir)


def test_a_try_that_fails_says_how(tmp_path: Path) -> None:
    folder = joining(tmp_path)
    (folder / "joining.py").write_text(JOINING.replace('{"loss"', '1 / 0, {"loss"'))
    run_dir = tmp_path / "run"
    assert job(run_dir, folder)[0].outcome == "failed"
    tree = otlp.tree(run_dir)
    for name in ("simulate", "worker simulation", "campaign bowl"):
        (span,) = tree.named(name)
        assert span.status.code == Status.STATUS_CODE_ERROR
    assert about(tree.named("simulate")[0])["error.type"] == "error"


def test_a_call_of_a_model_is_told_by_the_conventions_for_it(tmp_path: Path) -> None:
    good = fakeserver.answers(lambda _: [{"x": 0.1, "y": 0.2}])
    script = [fakeserver.fails(503, "busy", "busy"), fakeserver.says("no json"), good]
    run_dir = tmp_path / "run"
    with fakeserver.FakeServer(*script) as server:
        agent = {"kind": "openai", "model": "m", "url": server.url, "backoff": "0.001s"}
        folder = folders.folder(
            tmp_path / "campaign", rounds=1, batch_size=1, agent=agent | {"temperature": 0.5}
        )
        job(run_dir, folder)
        sent = server.bodies
    tree = otlp.tree(run_dir)
    assert tree.orphans == []
    calls = sorted(tree.named("chat m"), key=lambda span: span.start_time_unix_nano)
    assert [tree.path(span)[-2] for span in calls] == ["accept.attempt round 1"] * 3
    assert len({span.parent_span_id for span in calls}) == 2, "a repair is another attempt"
    assert {span.kind for span in calls} == {Span.SPAN_KIND_CLIENT}
    assert [about(span).get("error.type") for span in calls] == ["503", None, None]
    last = about(calls[-1])
    assert {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "m",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.seed": sent[-1]["seed"],
        "gen_ai.request.max_tokens": sent[-1]["max_tokens"],
        "gen_ai.output.type": "json",
        "gen_ai.response.finish_reasons": ["stop"],
        "server.address": "127.0.0.1",
    }.items() <= last.items()
    answered = [one.event for one in read(run_dir) if isinstance(one.event, Answered)]
    assert last["gen_ai.response.id"] == answered[-1].response_id
    assert last["gen_ai.usage.input_tokens"] == answered[-1].input_tokens
    assert last["gen_ai.usage.output_tokens"] == answered[-1].output_tokens
    metrics = otlp.metrics(run_dir)
    usage = {
        otlp.attributes(point.attributes)["gen_ai.token.type"]: point.sum
        for point in metrics["gen_ai.client.token.usage"].histogram.data_points
    }
    assert usage["output"] == sum(one.output_tokens for one in answered)
    points = metrics["gen_ai.client.operation.duration"].histogram.data_points
    assert sum(point.count for point in points) == 3
    charged = fold(read(run_dir)).usage.counters["tokens"].spent
    assert otlp.counted(metrics["simgate.tokens"], "simgate.spent_by") == {"agent": charged}


def test_files_hold_one_export_a_line_for_each_process(undisturbed: Path) -> None:
    names = {path.name for path in (undisturbed / "telemetry").iterdir()}
    assert names == {f"{one}-1-{os.getpid()}.jsonl" for one in ("traces", "metrics", "logs")}
    for path in (undisturbed / "telemetry").iterdir():
        assert all(json.loads(line) for line in path.read_text().splitlines())
