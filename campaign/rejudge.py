"""A run's candidates judged again, by the parameter space and rules of another config.

Nothing is run or asked. Candidates are judged in the order and the company they had, and what the
run's agent and verifiers answered is taken as it was, although under other rules some of it would
never have been asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from campaign.config import CampaignConfig, SurrogateAgent
from campaign.configfile import LoadedConfig
from campaign.events import VerdictRecord
from campaign.expectations import kept
from campaign.fates import OUT, Fate, Past, Said, in_process
from campaign.gateconfig import policies
from campaign.grounding import RATIONALE, reads
from campaign.judging import LOST, Batch, Judgement
from campaign.packing import unpack
from campaign.problems import ConfigError, clip
from campaign.rulebook import of_config
from campaign.rulereport import Tally, rule_id, word
from campaign.sittings import Sitting, sittings
from campaign.slots import Slot, recalled
from campaign.space import content_hash
from campaign.state import CampaignState
from checks.domain import Key, key, normalise
from checks.finding import Finding, Layer, Status, Verdict

if TYPE_CHECKING:
    from checks.rule import Rule


@dataclass(frozen=True, slots=True)
class Case:
    """One candidate: what the run made of it, and what the gate would under the other config.

    ``was`` and ``now`` are what is said in process, ``ended`` is what came of it in the run.
    """

    round: int
    slot: int
    generation: int  # 0: drawn to fill the slot
    draw: int
    parameters: object  # as the ledger has it
    content: str  # its hash, "" where it is no mapping
    was: Said
    now: Said
    ended: Said

    @property
    def let_on(self) -> bool:
        """Whether the run put it to its verifiers, or to its simulation where there are none."""
        return self.was.fate not in OUT

    @property
    def changed(self) -> bool:
        if self.now.fate is Fate.UNKNOWN or (self.was.fate in OUT and self.now.fate in OUT):
            return False
        return self.was.fate is not self.now.fate


@dataclass(frozen=True, slots=True)
class Counts:
    """What one check or rule said in the run, and would say; ``None`` where there is no such rule.

    ``reworded``: it asks something else under the same id.
    """

    check: str
    run: Tally | None
    now: Tally | None
    reworded: bool = False


@dataclass(frozen=True, slots=True)
class Replay:
    """Everything that was judged again. The rules named could not be, or not quite, where the
    agent's rationale is gone or a judge would have to be asked."""

    cases: tuple[Case, ...]
    checks: tuple[Counts, ...]
    recalled: tuple[str, ...] = ()  # what they said in the run was taken
    unknown: tuple[str, ...] = ()  # the run has no word of them either
    blind: tuple[str, ...] = ()  # were shown the candidate without the rationale


def rejudge(state: CampaignState, config: CampaignConfig, other: LoadedConfig) -> Replay:
    """Judge every candidate that a run has judged again, by ``other``.

    Raises ``ConfigError`` when ``other`` is about different parameters.
    """
    mine, theirs = config.parameters.keys(), other.config.parameters.keys()
    if mine != theirs:
        parts = (("only here", theirs - mine), ("only in the run", mine - theirs))
        named = [f"{where} {', '.join(map(clip, sorted(who)))}" for where, who in parts if who]
        message = f"not those of the run: {', '.join(named)}; give a config with the same ones"
        raise ConfigError([other.problem(("parameters",), message)], str(other.path))
    judge = _Judge(state, config, other)
    cases = tuple(case for sitting in sittings(state, config) for case in judge.again(sitting))
    blind = () if isinstance(config.agent, SurrogateAgent) else judge.blind()
    return Replay(cases, judge.counts(), tuple(judge.recalled), tuple(judge.unknown), blind)


class _Judge:
    """The layers of the other config, put to what a run saw."""

    def __init__(self, state: CampaignState, config: CampaignConfig, other: LoadedConfig) -> None:
        book = of_config(other)
        self._state, self._config, self._other = state, config, other.config
        self._on_error = [policies(one).check_error for one in (config, other.config)]
        self._layers, self._observes = book.layers, book.observes
        self._rules: Sequence[Rule] = book.layers.suite.rules if book.layers.suite else ()
        self._before = {rule_id(one): one.entry for one in (state.run.rules if state.run else ())}
        self._after = {rule_id(one): one.entry for one in kept(other.expect)}
        self._keys: list[Key] = []  # of the history
        self._seen: set[Key] = set()
        self._words: dict[str, tuple[Counter[str], Counter[str]]] = {}
        self.recalled: dict[str, None] = {}
        self.unknown: dict[str, None] = {}

    def again(self, sitting: Sitting) -> Iterator[Case]:
        """Judge one sitting again."""
        found = self._layers.judge(self._batch(sitting))
        for record in sitting.verdicts:
            then = _recorded(record)
            now, unknown = self._recalling(found[record.slot], then, sitting)
            for place, judgement in enumerate((then, now)):
                for check, said in _words(judgement):
                    self._words.setdefault(check, (Counter(), Counter()))[place][said] += 1
            yield self._case(sitting, record.slot, then, now, unknown)

    def counts(self) -> tuple[Counts, ...]:
        """Every rule of either config, and the checks of the space that rejected something."""
        before, after = self._before, self._after
        found = []
        for name in dict.fromkeys((*before, *after, *self._words)):
            run, now = map(Tally.of, self._words.get(name, (Counter(), Counter())))
            if name in before or name in after:
                reworded = name in before and name in after and before[name] != after[name]
                of_run, of_now = run if name in before else None, now if name in after else None
                found.append(Counts(name, of_run, of_now, reworded))
            elif run.failed or now.failed:
                found.append(Counts(name, run, now))
        return tuple(found)

    def blind(self) -> tuple[str, ...]:
        """The checks of the user's own that read a whole record, the rationale perhaps too."""
        return tuple(rule.id for rule in self._rules if _reads_all(rule))

    def _batch(self, sitting: Sitting) -> Batch:
        bounds = self._layers.bounds
        new = [key(bounds, point) for point in sitting.history[len(self._keys) :]]
        self._keys += new
        self._seen.update(new)
        candidates = {
            slot: normalise(bounds, unpack(one)) for slot, one in sitting.candidates.items()
        }
        return Batch(candidates, sitting.pinned, sitting.rationale, self._seen, sitting.history)

    def _recalling(
        self, judgement: Judgement, then: Judgement, sitting: Sitting
    ) -> tuple[Judgement, set[str]]:
        """With the run's word for what cannot be judged again, and the rules that have none."""
        said = () if judgement.expect is None else judgement.expect.findings
        if not judgement.fits and all(one.open for one in said):
            return judgement, set()  # the rules never saw it
        past = {} if then.expect is None else {one.check: one for one in then.expect.findings}
        findings: list[Finding] = []
        unknown: set[str] = set()
        for rule, one in zip(self._rules, said, strict=True):
            findings.append(one)
            if not _lost(rule, one, sitting):
                continue
            before = past.get(rule.id)
            if before and not before.open and self._before.get(rule.id) == self._after[rule.id]:
                findings[-1] = before
                self.recalled[rule.id] = None
            else:
                unknown.add(rule.id)
                self.unknown[rule.id] = None
        return Judgement(judgement.findings, Verdict(tuple(findings))), unknown

    def _case(
        self, sitting: Sitting, slot: int, then: Judgement, now: Judgement, unknown: set[str]
    ) -> Case:
        packed = sitting.candidates[slot]
        candidate = normalise(self._layers.bounds, unpack(packed))
        content = content_hash(packed) if isinstance(packed, dict) else ""
        place = (sitting.round, slot, sitting.generation)
        past = Past(self._state, self._config, *place, content)
        before = _slot(candidate, then, observing=sitting.observed)
        was = in_process(before, self._on_error[0])
        ended = past.ended(was)
        if ended.fate is Fate.FILTERED and was.fate is Fate.PASSED:
            was = ended
        after = _slot(candidate, now, observing=self._observes)
        said = in_process(after, self._on_error[1], unknown)
        reached = was.fate in OUT or ended.fate not in (*OUT, Fate.PASSED)
        if said.fate is Fate.PASSED and reached:
            said = past.guarded(after, self._other)
            if said.fate is Fate.FILTERED and unknown:  # by a verdict that is not whole
                said = Said(Fate.UNKNOWN, min(unknown), LOST.why)
        return Case(*place, sitting.draw, packed, content, was, said, ended)


def _slot(candidate: object, judgement: Judgement, *, observing: bool) -> Slot:
    slot = Slot(0)
    slot.judged(candidate, judgement, observing=observing)
    return slot


def _recorded(record: VerdictRecord) -> Judgement:
    """What the run said of a candidate."""
    findings = tuple(
        Finding(one.check, Layer(one.layer), Status(one.status), one.reason)
        for one in record.findings
    )
    return Judgement(findings, recalled(record) if record.expect else None)


def _words(judgement: Judgement) -> Iterator[tuple[str, str]]:
    """Each check and rule once, with what it said."""
    yield from dict.fromkeys((one.check, word(one)) for one in judgement.findings)
    for one in judgement.expect.findings if judgement.expect else ():
        yield one.check, word(one)


def _lost(rule: Rule, said: Finding, sitting: Sitting) -> bool:
    """Whether a rule did not answer because of what no ledger has, or no replay asks."""
    if rule.judged:
        return said.open
    if sitting.rationale is not LOST:
        return False
    return RATIONALE in reads(rule) or (_reads_all(rule) and said.status is Status.ERROR)


def _reads_all(rule: Rule) -> bool:
    return rule.test is not None and rule.test.own and rule.selector is None
