"""Judging devices by selectors, each distinct pair once in a reconcile."""

from __future__ import annotations

from dataclasses import dataclass

from modelplane.dra import selector as cel
from modelplane.dra.device import Device
from modelplane.labels import GROUP
from modelplane.scheduler.match import OutOfBudget, Verdict


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a selector is, before any device: an error with the reason it stands for, or usable.

    `placement_only` where it reads only modelplane.ai keys: it decides placement and stays out of the claim.
    """

    error: str = ""
    reason: str = "InvalidNodeSelector"
    placement_only: bool = False


class SelectorJudge:
    """Evaluates CEL selectors within the budget of one reconcile."""

    def __init__(self) -> None:
        self.budget = cel.Budget()
        self._compiled: dict[str, cel.Selector] = {}
        self._judgements: dict[str, Judgement] = {}
        self._verdicts: dict[tuple[str, str], Verdict] = {}

    def judgement(self, selector: str) -> Judgement:
        """Compile a selector."""
        found = self._judgements.get(selector)
        if found is None:
            found = self._judgements[selector] = self._judge(selector)
        return found

    def _judge(self, selector: str) -> Judgement:
        try:
            compiled = self._compiled[selector] = cel.compile(selector, self.budget)
        except cel.BudgetExceeded as error:
            return Judgement(str(error), "SelectorBudgetExceeded")
        except cel.SelectorError as error:
            return Judgement(str(error))
        domains = {key.domain for key in compiled.keys}
        if GROUP not in domains:
            return Judgement()
        if len(domains) > 1 or compiled.reads_driver:
            return Judgement("it reads modelplane.ai keys and a driver's; split it into two selectors")
        return Judgement(placement_only=True)

    def verdict(self, selector: str, device: Device) -> Verdict:
        """Evaluate a selector on a device; raises OutOfBudget."""
        key = (selector, device.fingerprint)
        found = self._verdicts.get(key)
        if found is None:
            found = self._verdicts[key] = self._evaluate(selector, device)
        return found

    def _evaluate(self, selector: str, device: Device) -> Verdict:
        if self.judgement(selector).error:
            return Verdict(match=False, error=self.judgement(selector).error)
        try:
            outcome = self._compiled[selector].evaluate(device, self.budget)
        except cel.BudgetExceeded as error:
            raise OutOfBudget(str(error)) from error
        if isinstance(outcome, cel.EvalError):
            return Verdict(match=False, error=outcome.message)
        return Verdict(match=isinstance(outcome, cel.Match))

    def nearest(self, selector: str, device: Device) -> str:
        """Say in a few words what about a device the selector refuses."""
        compiled = self._compiled.get(selector)
        return cel.nearest(compiled, device) or "" if compiled is not None else ""
