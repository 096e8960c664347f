"""The sections of the configuration's reference page: which model's keys stand where."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel

from campaign.agentconfig import (
    Asked,
    CommandAgent,
    JudgeConfig,
    Key,
    OpenAIAgent,
    PythonAgent,
    Serve,
)
from campaign.config import (
    Budgets,
    CampaignConfig,
    Cap,
    CommandTask,
    HoursCap,
    MpiTask,
    Objective,
    Output,
    PythonTask,
    ReplayAgent,
    SurrogateAgent,
)
from campaign.gateconfig import Defaults, Expect, Policy, Prompt, RuleEntry
from campaign.jobconfig import ChainConfig, JobConfig
from campaign.space import CategoricalParameter, FloatParameter, IntParameter
from campaign.taskconfig import Guard, SimulationFields, TaskFields, VerifierFields
from executors.config import (
    AllocationConfig,
    LocalConfig,
    MpiConfig,
    ParslConfig,
    Pilot,
    SlurmConfig,
    ThreadsConfig,
)


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page: the keys of one model, at one place of the file."""

    title: str
    prefix: str
    model: type[BaseModel]
    example: str = ""  # YAML that stands at the top level of a file
    base: type[BaseModel] | None = None  # whose keys have a section of their own


_OPENAI = """\
agent:
  kind: openai
  model: qwen3-4b
  url: http://127.0.0.1:8000/v1
  temperature: 0.7
"""
_SERVE = """\
agent:
  kind: openai
  model: qwen3-4b
  socket: "{run_dir}/model.sock"
  serve: {command: [llama-server, --model, /models/q.gguf, --host, "{run_dir}/model.sock"]}
"""
_KEY = """\
agent: {kind: openai, model: qwen3-4b, url: https://models.example.org/v1, key: {env: MODEL_KEY}}
"""
_COMMAND = """\
agent:
  kind: command
  command: ["{python}", "{campaign_dir}/propose.py"]
"""
_PYTHON = """\
agent: {kind: python, function: "propose:ask", history: recent}
"""
_JUDGE = """\
judge: {model: qwen3-4b, url: http://127.0.0.1:8000/v1}
"""

SECTIONS = (
    Section("The file", "", CampaignConfig),
    Section(
        "Parameters: float",
        "parameters.NAME.",
        FloatParameter,
        "parameters:\n  density: {type: float, min: 0.70, max: 0.95, unit: kg/m3}\n"
        "  rate: {type: float, min: 1e-6, max: 1e-2, scale: log}",
    ),
    Section(
        "Parameters: int",
        "parameters.NAME.",
        IntParameter,
        "parameters:\n  fins: {type: int, min: 2, max: 40, description: number of fins}",
    ),
    Section(
        "Parameters: categorical",
        "parameters.NAME.",
        CategoricalParameter,
        "parameters:\n  solver: {type: categorical, choices: [cg, gmres]}",
    ),
    Section(
        "Objective",
        "objective.",
        Objective,
        "objective: {name: pressure, target: 0.55355, tolerance: 0.03}",
    ),
    Section("Agent: surrogate", "agent.", SurrogateAgent, "agent: {kind: surrogate}"),
    Section("Agent: replay", "agent.", ReplayAgent, "agent: {kind: replay, file: answers.yaml}"),
    Section("Agents that are asked", "agent.", Asked),
    Section("Agent: openai", "agent.", OpenAIAgent, _OPENAI, base=Asked),
    Section("Server of an agent", "agent.serve.", Serve, _SERVE),
    Section("Key of a server", "agent.key.", Key, _KEY),
    Section("Agent: command", "agent.", CommandAgent, _COMMAND, base=Asked),
    Section("Agent: python", "agent.", PythonAgent, _PYTHON, base=Asked),
    Section("Judge", "judge.", JudgeConfig, _JUDGE),
    Section(
        "Expect",
        "expect.",
        Expect,
        "expect:\n  max_iterations: 3\n  expectations:\n    - id: stable_step\n"
        "      type: expression\n      params: {condition: 'rate * 0.5 < 0.01'}\n"
        "      hint: lower the rate",
    ),
    Section("Rules", "expect.expectations[].", RuleEntry),
    Section("Prompts of your own", "expect.repair.", Prompt),
    Section("Defaults", "defaults.", Defaults, "defaults: {expect: {max_iterations: 3}}"),
    Section("Tasks: keys of every kind", "simulation.", TaskFields),
    Section(
        "Tasks: python",
        "simulation.",
        PythonTask,
        'simulation:\n  kind: python\n  function: "model:simulate"\n'
        "  arguments: {cells: 200}\n  walltime: 2m",
        TaskFields,
    ),
    Section(
        "Tasks: mpi",
        "simulation.",
        MpiTask,
        'simulation:\n  kind: mpi\n  function: "model:simulate"\n  ranks: 2\n  walltime: 10m',
        TaskFields,
    ),
    Section(
        "Tasks: command",
        "simulation.",
        CommandTask,
        'simulation:\n  kind: command\n  command: [lmp, -in, in.lj, -var, seed, "{seed}"]\n'
        "  files: {in.lj: templates/in.lj}\n  ranks: 2\n  walltime: 5m\n"
        "  retries: 1\n  output: {json: result.json}",
        TaskFields,
    ),
    Section("Output", "simulation.output.", Output),
    Section(
        "Simulation: keys beside those of a task",
        "simulation.",
        SimulationFields,
        'simulation:\n  kind: python\n  function: "model:simulate"\n  walltime: 2h\n'
        '  dry_run: {kind: python, function: "model:estimate", walltime: 1m}',
    ),
    Section(
        "Guard",
        "simulation.guard.",
        Guard,
        'simulation:\n  kind: python\n  function: "model:simulate"\n  walltime: 2m\n'
        "  guard: {condition: 'expect.overall_pass == true', on_false: filter}",
    ),
    Section(
        "Verifiers: keys beside those of a task",
        "verifiers[].",
        VerifierFields,
        'verifiers:\n  - name: short_run\n    kind: command\n    command: ["./check", "{seed}"]\n'
        "    walltime: 30s\n    output: {exit_codes: {0: pass, 3: reject}}",
    ),
    Section(
        "Budgets",
        "budgets.",
        Budgets,
        "budgets: {node_hours: 0.5, generations: {limit: 20, per: job}}",
    ),
    Section("Caps", "budgets.NAME.", Cap),
    Section(
        "Caps on node-hours",
        "budgets.node_hours.",
        HoursCap,
        "budgets: {node_hours: {limit: 20, count: tasks}}",
    ),
    Section(
        "Executors: threads",
        "executors.LABEL.",
        ThreadsConfig,
        "executors: {default: {kind: threads, workers: 2}}",
    ),
    Section(
        "Executors: local",
        "executors.LABEL.",
        LocalConfig,
        "executors: {default: {kind: local, workers: 2, start_timeout: 2m}}",
    ),
    Section(
        "Executors: slurm",
        "executors.LABEL.",
        SlurmConfig,
        "executors:\n  default:\n    kind: slurm\n    nodes: 2\n    workers_per_node: 16\n"
        "    max_pilots: 4\n    pilot: {walltime: 1h, partition: batch, account: abc123}",
    ),
    Section(
        "Executors: allocation",
        "executors.LABEL.",
        AllocationConfig,
        "executors:\n  default: {kind: allocation, workers_per_node: 16}",
    ),
    Section(
        "Executors: mpi",
        "executors.LABEL.",
        MpiConfig,
        "executors:\n  default: {kind: allocation, nodes: 1, workers_per_node: 16}\n"
        "  simulate: {kind: mpi, nodes: 4}",
    ),
    Section(
        "Executors: parsl",
        "executors.LABEL.",
        ParslConfig,
        'executors:\n  default: {kind: parsl, function: "cluster:config", workers: 8}',
    ),
    Section("Pilot jobs", "executors.LABEL.pilot.", Pilot),
    Section(
        "Job",
        "job.",
        JobConfig,
        "job:\n  walltime: 4h\n  partition: batch\n  account: abc123\n"
        "  setup: [module load gcc || exit]\n  margin: 2m\n  chain: {jobs: 10}",
    ),
    Section("Chain", "job.chain.", ChainConfig, "job: {walltime: 4h, chain: {jobs: 10}}"),
    Section("Policy", "policy.", Policy, "policy: {verifier_failure: reject}"),
)
