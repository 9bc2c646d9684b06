"""Device selectors: CEL expressions over one DRA device, with the verdicts of a Kubernetes API server and scheduler.

`compile` refuses what an API server since 1.34 would refuse, and what this package does not evaluate; `evaluate`
answers Match, NoMatch or EvalError, in bounded time. https://kubernetes.io/docs/reference/using-api/cel/
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from modelplane.dra.device import Device
from modelplane.dra.selector import checker, cost
from modelplane.dra.selector.budget import Budget, Recent
from modelplane.dra.selector.errors import BudgetExceeded, CompileError, SelectorError, TooCostly, Unsupported
from modelplane.dra.selector.facts import fact
from modelplane.dra.selector.grammar import parse
from modelplane.dra.selector.program import Program, environment
from modelplane.dra.selector.reach import ATTRIBUTE, CAPACITY, Key, keys
from modelplane.dra.selector.scan import MAX_BYTES
from modelplane.dra.selector.syntax import Node
from modelplane.dra.selector.values import EvaluationError, MapValue, OutOfSteps, name_of

__all__ = [
    "ATTRIBUTE",
    "CAPACITY",
    "Budget",
    "BudgetExceeded",
    "CompileError",
    "EvalError",
    "Key",
    "Match",
    "NoMatch",
    "Outcome",
    "Selector",
    "SelectorError",
    "TooCostly",
    "Unsupported",
    "compile",
    "nearest",
]

STEPS_PER_BYTE = 100
STEPS_PER_PATTERN_BYTE = 700

_MESSAGE_LIMIT = 300


@dataclass(frozen=True, slots=True)
class Match:
    """The device is selected."""


@dataclass(frozen=True, slots=True)
class NoMatch:
    """The device is not selected."""


@dataclass(frozen=True, slots=True)
class EvalError:
    """The selector has no value on the device: a real scheduler would give up on the whole pod."""

    message: str


Outcome: TypeAlias = "Match | NoMatch | EvalError"

_programs: Recent[str, Selector | CompileError] = Recent(4_096)
_verdicts: Recent[tuple[str, str, int], tuple[Outcome, int]] = Recent(65_536)
_environments: Recent[str, MapValue] = Recent(1_024)


@dataclass(frozen=True, slots=True, eq=False)
class Selector:
    """A compiled selector. `keys` are what it reads, with None for what only the device decides."""

    text: str
    keys: frozenset[Key]
    reads_driver: bool
    worst_cost: int
    _pattern_steps: int
    _root: Node
    _program: Program

    def evaluate(self, device: Device, budget: Budget) -> Outcome:
        """Whether the device is selected. Raises BudgetExceeded, when the steps of the reconcile are used up."""
        budget.charge(0)
        key = (self.text, device.fingerprint, budget.per_evaluation)
        known = _verdicts.get(key)
        if known is None:
            budget.evaluations += 1
            known = self._run(device, budget.per_evaluation)
            _verdicts.put(key, known)
        outcome, steps = known
        budget.charged += 1
        budget.charge(steps)
        return outcome

    def _run(self, device: Device, limit: int) -> tuple[Outcome, int]:
        variables = _environments.get(device.fingerprint)
        if variables is None:
            variables = environment(device)
            _environments.put(device.fingerprint, variables)
        try:
            value, steps = self._program.run(variables, limit)
        except OutOfSteps:
            return EvalError(f"takes more than the {limit} steps that one evaluation may take"), limit
        except Exception as error:  # nothing a tenant writes may stop the reconcile
            return EvalError(f"cannot be evaluated: {type(error).__name__}"), limit
        if value is True:
            return Match(), steps
        if value is False:
            return NoMatch(), steps
        if isinstance(value, EvaluationError):
            return EvalError(str(value)[:_MESSAGE_LIMIT]), steps
        return EvalError(f"the result is not a bool but a {name_of(value)}"), steps


def compile(text: str, budget: Budget | None = None) -> Selector:
    """Compile a selector, charging its length to the budget.

    Raises CompileError, its subclasses Unsupported and TooCostly, and BudgetExceeded.
    """
    if budget is not None:
        budget.charge(STEPS_PER_BYTE * min(len(text.encode(errors="replace")), MAX_BYTES))
    found = _programs.get(text)
    if found is None:
        try:
            found = _compile(text)
        except CompileError as error:
            found = error.with_traceback(None)
        except Exception as error:  # nothing a tenant writes may stop the reconcile
            found = CompileError(f"cannot be compiled: {type(error).__name__}")
        _programs.put(text, found)
    if isinstance(found, CompileError):
        raise type(found)(found.message, found.line, found.column, found.caret)
    if budget is not None:
        budget.charge(found._pattern_steps)
    return found


def nearest(selector: Selector, device: Device) -> str | None:
    """A fact that tells why a selector does not match, such as "memory 81559Mi < 80Gi", if there is a simple one."""
    return fact(selector._root, device)


def _compile(text: str) -> Selector:
    root = parse(text)
    pattern_bytes = checker.check(root, text)
    program = Program(root, text)
    worst = cost.estimate(root)
    if worst > cost.LIMIT:
        shown = "has no bound" if worst >= cost.UNBOUNDED // 100 else f"is {worst}"
        raise TooCostly(f"too costly: the worst case {shown}, the limit of the API server is {cost.LIMIT}")
    read, reads_driver = keys(root)
    return Selector(text, read, reads_driver, worst, STEPS_PER_PATTERN_BYTE * pattern_bytes, root, program)
