"""What the help of each command says beneath its options."""

from __future__ import annotations

from campaign.helppage import Rows, Sheet

_CONFIG = ("CONFIG", "A campaign's YAML file, or a folder with a campaign.yaml.")
_RULES = ("CONFIG", "A campaign's YAML file, a folder with a campaign.yaml, or a file of rules.")
_RUN = ("RUN", "The directory of a run, by default runs/NAME-TIME.")

_USAGE = ("2", "Bad configuration or usage; standard error names every problem.")
_NO_RUN = ("2", "Bad usage, or RUN holds no run.")
_UNREADABLE = ("1", "The ledger of the run does not read.")
_LOOKED: Rows = (("0", "Printed."), _UNREADABLE, _NO_RUN)
_DRIVEN: Rows = (
    ("0", "Done."),
    ("1", "Failed; the last line of the run says why."),
    _USAGE,
    ("75", "Stopped by a signal or a limit; go on with: simgate resume RUN."),
)
_DRIVER: Rows = (
    ("agent.key.env", "The variable that this key names holds the key of the agent's server."),
    ("SLURM_JOB_ID", "Inside a Slurm job, its nodes are those of the run."),
    (
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "Where telemetry goes besides RUN/telemetry; needs the extra otlp.",
    ),
    ("OTEL_SDK_DISABLED", "With true there is no telemetry."),
)

INDEX = Sheet(
    exits=(
        ("0", "Done."),
        ("1", "Failed; standard error names what."),
        ("2", "Bad configuration or usage."),
        ("75", "Stopped; simgate resume RUN goes on."),
    ),
    environment=(
        ("NO_COLOR", "Set to anything: no colours."),
        ("TERM", "With dumb no live view: one line for each decision."),
        ("COLUMNS", "The width of help and tables; by default the terminal's."),
        ("PYTHONIOENCODING", "With ascii nothing but ASCII is printed for people."),
        ("_SIMGATE_COMPLETE", "bash_source, zsh_source or fish_source prints completions."),
    ),
    examples=(
        ("simgate init my-campaign", "A small campaign to begin with."),
        ("simgate inspect my-campaign", "What it would cost at most, before anything runs."),
        ("simgate run my-campaign", "Run it; simgate COMMAND --help tells of each command."),
    ),
)

SHEETS = {
    "run": Sheet(
        (_CONFIG,),
        _DRIVEN,
        _DRIVER,
        (
            ("simgate run my-campaign", "Run it, into runs/NAME-TIME."),
            ("simgate run my-campaign --set rounds=1", "One round of it."),
            ("simgate run my-campaign | tee log", "Each decision as a line, to be searched."),
        ),
        "simgate inspect, submit, resume, watch; docs/reference/config.md",
    ),
    "resume": Sheet(
        (_RUN,),
        _DRIVEN,
        _DRIVER,
        (("simgate resume runs/throw-20260101-120000", "Go on where it was left."),),
        "simgate status, submit; docs/how-to/resume.md",
    ),
    "status": Sheet(
        (_RUN,),
        _LOOKED,
        (),
        (("simgate status RUN --json | jq .best", "The best candidate so far, for a program."),),
        "simgate watch, why, report",
    ),
    "inspect": Sheet(
        (_CONFIG,),
        (("0", "It can run."), _USAGE),
        (),
        (("simgate inspect my-campaign --set batch_size=16", "What a larger batch would cost."),),
        "simgate rules, run --dry-run; docs/reference/config.md",
    ),
    "schema": Sheet(
        (),
        (("0", "Printed."),),
        (),
        (("simgate schema > campaign.schema.json", "For the first line of a campaign.yaml."),),
        "docs/reference/config.md",
    ),
    "init": Sheet(
        (("DIRECTORY", "A new or empty folder."),),
        (("0", "Written."), ("2", "The folder holds something, or cannot be written.")),
        (),
        (("simgate init my-campaign", "Then: simgate run my-campaign"),),
        "simgate inspect, run; docs/tutorial/first-campaign.md",
    ),
    "watch": Sheet(
        (_RUN,),
        (
            ("0", "The run is done; with --once also while it goes on."),
            ("1", "It failed, or its ledger does not read."),
            ("2", "Bad usage; with --once also where RUN holds no run."),
            ("75", "It was stopped."),
            ("130", "Ctrl-C ended the watching, not the run."),
        ),
        (),
        (
            ("simgate watch RUN", "Follow it, from any machine that sees the files."),
            ("simgate watch RUN | grep 'rejected by'", "Every rejection, as it falls."),
        ),
        "simgate status, why, report",
    ),
    "rules": Sheet(
        (_RULES,),
        (("0", "Printed."), _USAGE),
        (),
        (("simgate rules my-campaign --json", "The same for a program."),),
        "simgate check, inspect; docs/reference/rules.md",
    ),
    "check": Sheet(
        (_RULES,),
        (("0", "Judged."), ("1", "Fewer than --fail-under pass."), _USAGE),
        (),
        (
            (
                "simgate check my-campaign --records points.csv",
                "Which of them the rules reject, and why.",
            ),
            (
                "cat points.jsonl | simgate check rules.yaml --records - --fail-under 90",
                "For a test: fail when more than a tenth does not pass.",
            ),
        ),
        "simgate rules, replay; docs/how-to/write-rules.md",
    ),
    "report": Sheet(
        (_RUN,),
        (
            ("0", "Printed or written."),
            ("1", "The ledger does not read; with --rules see above."),
            _NO_RUN,
        ),
        (),
        (
            ("simgate report RUN --html report.html", "One page with plots, to be mailed."),
            ("simgate report RUN --rules --fail-under 50", "Whether an agent knows the rules."),
        ),
        "simgate export, why, replay; docs/how-to/report.md",
    ),
    "replay": Sheet(
        (_RUN,),
        (("0", "Printed."), _UNREADABLE, _USAGE),
        (),
        (("simgate replay RUN --with stricter.yaml", "What stricter rules would have saved."),),
        "simgate rules, check, report --rules",
    ),
    "why": Sheet(
        (
            _RUN,
            (
                "CANDIDATE",
                "A place such as r3 s2, a content hash or the beginning of one, or the directory "
                "of one of its tasks.",
            ),
        ),
        (("0", "Printed."), _UNREADABLE, ("2", "No such run or candidate; it names near ones.")),
        (),
        (
            ("simgate why RUN r3 s2", "All that was proposed for slot 2 of round 3."),
            ("simgate why RUN 91e1ac", "The candidate whose hash begins so, wherever it stood."),
        ),
        "simgate watch, report; docs/how-to/debug-a-rejected-batch.md",
    ),
    "export": Sheet(
        (_RUN,),
        (
            ("0", "Written."),
            _UNREADABLE,
            ("2", "Bad usage, no run, or what it would write to cannot be written."),
        ),
        (),
        (
            ("simgate export RUN --out observations.csv", "What was simulated, UTF-8."),
            ("simgate export RUN --what candidates --format jsonl", "All, with their fates."),
        ),
        "simgate report, why; docs/how-to/report.md",
    ),
    "submit": Sheet(
        (_CONFIG, ("RUN", "The directory of a run that was stopped, to go on with it.")),
        (
            ("0", "Queued; or, with --print, printed."),
            ("1", "Slurm refused the job, in its own words."),
            ("2", "Bad configuration or usage, or a run in the way."),
        ),
        (("SLURM_CONF", "Slurm's own, and all others that sbatch heeds."),),
        (
            ("simgate submit my-campaign --print", "Look at the script first."),
            ("simgate submit my-campaign --chain", "Job after job until it is done."),
        ),
        "simgate status, cancel; docs/how-to/run-on-slurm.md",
    ),
    "cancel": Sheet(
        (_RUN,),
        (
            ("0", "Nothing of it runs or waits any more."),
            ("1", "Something could not be ended; standard error names it."),
            _NO_RUN,
        ),
        (),
        (("simgate cancel RUN", "End it; simgate resume RUN goes on with it another day."),),
        "simgate status, resume; docs/how-to/run-on-slurm.md",
    ),
}
