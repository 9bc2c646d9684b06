"""The device of the vectors, and the verdict of a selector in the vectors' words."""

import json
from pathlib import Path
from typing import Any

import pytest

from modelplane.dra import selector
from modelplane.dra.device import Device

FOLDER = Path(__file__).parent / "vectors"
VECTORS: dict[str, Any] = json.loads((FOLDER / "dra-cel.json").read_text())


def read_device() -> Device:
    device = Device.read({"name": "gpu", "deviceClassName": "gpu.nvidia.com", **VECTORS["device"]}, "device")
    assert isinstance(device, Device), device
    return device


class Judge:
    def __init__(self) -> None:
        self.device = read_device()
        self.cases: list[dict[str, str]] = VECTORS["cases"]
        self.generated: list[dict[str, Any]] = json.loads((FOLDER / "dra-generated.json").read_text())["cases"]

    def verdict(
        self, text: str, budget: selector.Budget | None = None, device: Device | None = None
    ) -> tuple[str, str]:
        """The verdict and, if there is one, the message; on the device of the vectors unless another is given."""
        budget = budget or selector.Budget(total=10**9)
        try:
            compiled = selector.compile(text, budget)
        except selector.Unsupported as error:
            return "unsupported", str(error)
        except selector.TooCostly as error:
            return "toocostly", str(error)
        except selector.CompileError as error:
            return "compile", str(error)
        outcome = compiled.evaluate(device or self.device, budget)
        if isinstance(outcome, selector.EvalError):
            return "error", outcome.message
        return ("true" if isinstance(outcome, selector.Match) else "false"), ""


@pytest.fixture(scope="session")
def judge() -> Judge:
    return Judge()
