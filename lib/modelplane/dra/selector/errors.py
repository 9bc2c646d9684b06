"""What can be wrong with a selector before it is evaluated."""

from __future__ import annotations


class SelectorError(Exception):
    """Any refusal of a selector."""


class CompileError(SelectorError):
    """A selector that the API server of a cluster, or this scheduler, refuses.

    `line` and `column` count from 1; `caret` is the offending line with a mark below it.
    """

    def __init__(self, message: str, line: int = 1, column: int = 1, caret: str = "") -> None:
        super().__init__(message, line, column, caret)
        self.message = message
        self.line = line
        self.column = column
        self.caret = caret

    def __str__(self) -> str:
        where = f"{self.message} (line {self.line}, column {self.column})"
        return f"{where}\n{self.caret}" if self.caret else where

    @classmethod
    def at(cls, message: str, text: str, position: int) -> CompileError:
        """The error at an offset of the text, with at most 80 characters of its line."""
        start = text.rfind("\n", 0, position) + 1
        end = text.find("\n", position)
        line = text[start : end if end >= 0 else len(text)]
        column = position - start
        first = max(0, column - 60)
        shown = line[first : first + 80].replace("\t", " ").replace("\r", " ")
        return cls(message, text.count("\n", 0, position) + 1, column + 1, f"{shown}\n{' ' * (column - first)}^")


class Unsupported(CompileError):  # noqa: N818
    """A construct that Kubernetes knows and this scheduler does not evaluate; the message names it."""


class TooCostly(CompileError):  # noqa: N818
    """A selector whose worst case exceeds the limit of the API server."""


class BudgetExceeded(Exception):  # noqa: N818
    """The selectors of one reconcile have used up their steps."""
