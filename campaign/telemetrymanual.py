"""Generates ``docs/reference/telemetry.md`` from the names in :mod:`campaign.conventions`."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Sequence

from campaign import conventions, exporting
from checks.tracing import CAPTURE

_ABOUT = f"""
A run tells by [OpenTelemetry](https://opentelemetry.io) what it does, and needs no network for it.

{{files}}

* `OTEL_EXPORTER_OTLP_ENDPOINT`, or the variable of one signal, such as
  `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`, names a collector that gets the same by HTTP. It takes
  `pip install 'simgate[otlp]'`. Headers, certificates, time-outs, the sampler and the delays of the
  batches are set by OpenTelemetry's own variables.
* `OTEL_SDK_DISABLED=true` turns all of it off.
* `{CAPTURE}` says where content may be: `SPAN_ONLY`,
  `EVENT_ONLY` or `SPAN_AND_EVENT`. Content is what a model was told and what it said. By default,
  and with any other value, it is nowhere.

The ledger is the record of a run; telemetry is a view of it that may have gaps. Where it cannot be
written, on a full disk for one, or a collector does not answer, the log says so once and the run
goes on. At the end of a job the last of it has {exporting.CLOSING:g} seconds to get out. A driver
that is killed loses what it said in its last seconds, and the spans that were open: the spans below
them keep the parents they had.

A task finds its span in the environment variable `TRACEPARENT`, so that a program of yours can
join the trace, unless `env` of the task names another. Workers write no telemetry: what they did
is in their results, of which the driver makes their spans.

To look at the files, have a collector read them (its receiver `otlpjsonfile`), or use `jq`:

```
jq -r '.resourceSpans[].scopeSpans[].spans[]
  | [.name, ((.endTimeUnixNano | tonumber) - (.startTimeUnixNano | tonumber)) / 1e9]
  | @tsv' RUN/telemetry/traces-*.jsonl
```
"""


def render_telemetry(made: str) -> str:
    """The page; ``made`` says how it is made."""
    files = (
        (inspect.cleandoc(exporting.__doc__ or "").split("\n\n")[1])
        .partition(" Where")[0]
        .replace("``", "`")
    )
    lines = [made, "", "# Telemetry", "", _ABOUT.strip().format(files=files), ""]
    lines += ["## Spans", "", *_table(("span", "what it is"), _named(conventions.SPANS))]
    lines += ["", "A round is below its job, the gate below its round, its attempts below it, and"]
    lines += ["everything else below the attempt it belongs to; what the fallback led to is below"]
    lines += ["the gate itself, and tries an earlier job began below the job that settles them."]
    lines += ["", "## Events", "", *_table(("event", "what it is"), _named(conventions.EVENTS))]
    lines += ["", "## Metrics", "", *_table(("metric", "unit", "kind", "what it is"), _metrics())]
    lines += ["", "## Attributes", ""]
    lines += [*_table(("attribute", "what it is"), _named(conventions.ATTRIBUTES))]
    lines += ["", "The gate's own are `flowgentic.accept.name`, `.attempts.max`, `.attempts.used`,"]
    lines += ["`.disposition`, `.attempt` and `.value`, the last of which is content."]
    return "\n".join([*lines, ""])


def _named(table: dict[str, str]) -> Iterator[tuple[str, ...]]:
    return ((f"`{name}`", text) for name, text in table.items())


def _metrics() -> Iterator[tuple[str, ...]]:
    for metric in conventions.METRICS:
        kind = "histogram" if metric.buckets else "counter"
        yield f"`{metric.name}`", f"`{metric.unit}`", kind, metric.description


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"
