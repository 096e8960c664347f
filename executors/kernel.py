"""The one DataFlowKernel of a run, and the dangerous corners of Parsl around it.

Never the global one of ``parsl.load``. Everything here blocks and belongs into a thread, but for
:meth:`Kernel.submit` and :meth:`Site.broken`, which return at once.
"""

from __future__ import annotations

import atexit
import contextlib
import getpass
import logging
import os
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

import zmq
from parsl.dataflow.dflow import DataFlowKernel
from parsl.executors import HighThroughputExecutor
from parsl.executors.base import ParslExecutor

from executors import sites
from executors.background import has_ended
from executors.config import ExecutorConfig, granted, pilot
from executors.payer import Wanted
from executors.pilots import PilotProvider
from executors.provider import ChildProvider, end_group
from executors.ran import Ran
from executors.sites import Around

_log = logging.getLogger(__name__)
_END = 5.0  # seconds an interchange may take to end
_ANSWER = 20.0  # seconds an interchange may take to say how many workers there are


class Site:
    """One executor of Parsl's that is running, with what is needed to watch and to end it.

    Of a provider it wants that ``cancel`` returns when the blocks are gone, ``exit_code`` of a
    block that ended, ``how`` and ``output_tail`` to say why, and ``why_lost`` for one that did not.
    """

    def __init__(self, executor: ParslExecutor) -> None:
        self.executor = executor
        self.came_up = False  # a worker has said so
        self._ended = False

    def open_block(self) -> None:
        """Ask for the workers. Raises ``RuntimeError`` when they cannot be asked for."""
        executor = self.executor
        if isinstance(executor, HighThroughputExecutor) and not executor.scale_out_facade(1):
            said = [str(status.message) for status in executor.status_facade.values()]
            words = [one.removeprefix("Failed to start block 0: ") for one in said]
            raise RuntimeError(f"no worker pool: {'; '.join(words)}")

    def waits(self) -> str:
        """Why its nodes are not there yet, in the scheduler's word; ``""`` once they are."""
        provider = _provider(self.executor)
        return "" if provider is None else provider.waits()

    def ends_at(self) -> float:
        """Seconds since the epoch at which its nodes are taken away; 0 for never."""
        provider = _provider(self.executor)
        return 0.0 if provider is None else provider.ends_at()

    def pilot(self) -> str:
        """Slurm's number of its pilot job, ``""`` for none."""
        provider = _provider(self.executor)
        return provider.job_id if isinstance(provider, PilotProvider) else ""

    def began(self) -> float:
        """When its pilot job started, seconds since the epoch, 0 for not yet. Blocks."""
        provider = _provider(self.executor)
        return provider.began() if isinstance(provider, PilotProvider) else 0.0

    def in_vain(self) -> str:
        """Why its nodes will never be there, in the scheduler's word; ``""`` while they may."""
        provider = _provider(self.executor)
        return "" if provider is None else provider.in_vain()

    def leaves(self) -> bool:
        """Whether its pilot job is so near its end that it is better given back."""
        provider = _provider(self.executor)
        return isinstance(provider, PilotProvider) and provider.leaves()

    def ran(self, name: str) -> Ran | None:
        """How long the pilot job ``name`` had its nodes, None when nobody can tell. Blocks."""
        provider = _provider(self.executor)
        return provider.ran(name) if isinstance(provider, PilotProvider) else None

    def broken(self) -> str | None:
        """Why this executor will never answer again; None while it may.

        Parsl itself notices none of these: results of a dead interchange are waited for for ever.
        """
        executor = self.executor
        if self._ended or not isinstance(executor, HighThroughputExecutor):
            return None
        interchange = executor.interchange_proc
        if interchange is not None and interchange.poll() is not None:
            return f"Parsl's interchange ended ({_how(interchange.returncode)})"
        provider = _provider(executor)
        if why := self.in_vain():
            return f"pilot job {self.pilot()} can never start: {why}"
        if provider is not None and provider.exit_code() is not None:
            is_job = isinstance(provider, PilotProvider)
            what = f"pilot job {self.pilot()}" if is_job else "worker pool"
            tail = provider.output_tail()[-1000:]
            return f"the {what} ended ({provider.how(self.came_up)}): {tail}".rstrip(": ")
        reader = executor._result_queue_thread
        if reader is not None and has_ended(reader):
            return "Parsl's result thread ended"
        return None

    def why_lost(self, host: str) -> str:
        """What Slurm says of a worker that was lost (with ``host``), ``""`` for nothing.

        Blocks; afterwards :meth:`broken` knows about a pilot job that has ended meanwhile.
        """
        provider = _provider(self.executor)
        return "" if provider is None else provider.why_lost(host)

    def workers(self) -> int | None:
        """How many workers, or whole nodes, there are now; None: nobody says. Blocks a little."""
        executor = self.executor
        if self._ended or not isinstance(executor, HighThroughputExecutor):
            return None
        provider = _provider(executor)
        if provider is not None and provider.whole_nodes:
            return provider.nodes_left()
        try:
            ask = executor.command_client.run
            managers = ask("MANAGERS", timeout_s=_ANSWER)  # type: ignore[no-untyped-call]
        except Exception:  # closed meanwhile, or too busy: Parsl then asks it nothing any more
            return None
        return sum(int(one["worker_count"]) for one in managers if one["active"])

    def end(self) -> None:
        """End workers and interchange and everything below them; idempotent, bounded."""
        executor = self.executor
        if self._ended or not isinstance(executor, HighThroughputExecutor):
            return
        self._ended = True
        if executor.provider is not None:
            executor.provider.cancel(list(executor.job_ids_to_block))
        interchange: subprocess.Popen[bytes] | None = executor.interchange_proc
        if interchange is not None:
            interchange.terminate()
            end_group(interchange, _END)
        if hasattr(executor, "outgoing_q"):
            # Closing it would wait for ever to hand its messages to an interchange that is dead.
            executor.outgoing_q.zmq_socket.setsockopt(zmq.LINGER, 0)


class Kernel:
    """The DataFlowKernel of one run; ``sites`` by label."""

    def __init__(self, configs: Mapping[str, ExecutorConfig], around: Around) -> None:
        """Values only; :meth:`start` does the work."""
        self._configs = dict(configs)
        self._around = around
        self._dfk: DataFlowKernel | None = None
        self._closed = False
        self._generations = dict.fromkeys(configs, 0)
        self.sites: dict[str, Site] = {}

    def start(self) -> None:
        """Start the kernel and its executors, pilot jobs excepted; nothing is left on an error."""
        config = sites.parsl_config(self._configs, self._around)
        at_once = [label for label, one in self._configs.items() if pilot(one) is None]
        # Given none at all, Parsl makes one of its own.
        made = zip(at_once, config.executors, strict=False)
        self.sites = {label: Site(executor) for label, executor in made}
        _have_a_name()
        try:
            self._dfk = DataFlowKernel(config)
            if self._closed:
                raise RuntimeError("closed while it started")
            for site in self.sites.values():
                site.open_block()
        except BaseException:
            self.close()
            raise

    def restart(self, label: str) -> None:
        """Start an executor, in place of one that broke; the old one is ended first."""
        dfk = self._running()
        name = self._next_name(label)
        if (old := self.sites.get(label)) is not None:
            self.discard(label)  # a no-op for one that was discarded when it broke
            dfk.executors.pop(old.executor.label, None)
            self._generations[label] += 1
        around = self._around if old is None else self._around.without_lost_nodes(label)
        new = Site(sites.parsl_executor(label, name, self._configs[label], around))
        self.sites[label] = new
        dfk.add_executors([new.executor])
        new.open_block()

    def wanted(self, label: str) -> Wanted:
        """The pilot job that the next :meth:`restart` of a label asks for."""
        asks = pilot(self._configs[label])
        assert asks is not None
        name = sites.pilot_name(self._next_name(label), self._around)
        return Wanted(name, self._around.place(label).count, granted(asks.walltime))

    def discard(self, label: str) -> None:
        """End an executor that broke, so that nothing of it is left; its futures fail."""
        if (site := self.sites.get(label)) is None:
            return
        _end(site)
        executor = site.executor
        if isinstance(executor, HighThroughputExecutor) and not executor.bad_state_is_set:
            with contextlib.suppress(Exception):  # a future that is already done
                executor.set_bad_state_and_fail_all(RuntimeError("the executor broke"))
            with contextlib.suppress(Exception):  # sockets of a half-started executor
                executor.shutdown(timeout=_END)
                _close_results(executor)

    def submit(self, label: str, function: Callable[..., object], *args: object) -> Future[Any]:
        """Hand one call to an executor. Raises when the kernel is closed."""
        future: Future[Any] = self._running().submit(
            function,
            app_args=args,
            executors=[self.sites[label].executor.label],
            cache=False,
            ignore_for_cache=None,
            app_kwargs={},
        )
        return future

    def broken(self) -> str | None:
        """Why one of the executors will never start or answer; None while all may."""
        return next(filter(None, (site.broken() for site in self.sites.values())), None)

    def close(self) -> None:
        """End every executor, then the kernel; idempotent."""
        self._closed = True
        dfk, self._dfk = self._dfk, None
        if dfk is not None:
            _at_once([partial(_end, site) for site in self.sites.values()])
        else:  # there is no kernel yet that would close them
            _at_once([partial(self.discard, label) for label in self.sites])
        if dfk is not None and not dfk.cleanup_called:
            try:
                dfk.cleanup()
            finally:
                atexit.unregister(dfk.atexit_cleanup)

    def _next_name(self, label: str) -> str:
        return sites.parsl_label(label, self._generations[label] + (label in self.sites))

    def _running(self) -> DataFlowKernel:
        if self._dfk is None:
            raise RuntimeError("the executors are closed")
        return self._dfk


def _provider(executor: ParslExecutor) -> ChildProvider | PilotProvider | None:
    """The provider that is ours; None for threads, and for one a function of the user's made."""
    found = getattr(executor, "provider", None)
    return found if isinstance(found, ChildProvider | PilotProvider) else None


def _at_once(works: Sequence[Callable[[], None]]) -> None:
    """All of these, side by side: each pilot job may take its time to leave."""
    threads = [threading.Thread(target=work, daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _end(site: Site) -> None:
    try:
        site.end()
    except Exception:  # the others are to be ended all the same
        _log.exception("an executor of Parsl's could not be ended")


def _close_results(executor: HighThroughputExecutor) -> None:
    """Close what Parsl's result thread closes at its end, unless it died."""
    if not executor.incoming_q.results_receiver.closed:
        executor.incoming_q.results_receiver.close(0)
        executor.incoming_q.zmq_context.term()  # type: ignore[no-untyped-call]


def _have_a_name() -> None:
    """Parsl asks for the user's name, which a container's made-up user may not have."""
    try:
        getpass.getuser()
    except (KeyError, OSError):
        os.environ["LOGNAME"] = f"uid{os.getuid()}"


def _how(code: int) -> str:
    return f"exit code {code}" if 0 <= code <= 128 else f"signal {abs(code) % 128}"
