"""Compare the selector engine with Kubernetes on generated selectors, and on every vector on every device.

    python -m tests.conformance.fuzz ORACLE [--count N] [--seed S] [--devices h100,bare] [--vectors]

Prints the differences that are not written down, by class, the shortest selectors of each first.
Ends with 1 if there are any.
"""

import argparse
import collections
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.conformance.generator import Generator
from tests.lib.dra.conftest import Judge
from tests.lib.dra.test_own_vectors import DIFFERENT

from modelplane.dra import selector
from modelplane.dra.device import Device

VECTORS = Path(__file__).parents[1] / "lib/dra/vectors"
SHOWN = 3
SLOW = 0.01


def ask(oracle: str, device: dict[str, Any], texts: list[str]) -> list[dict[str, Any]]:
    """The answers of Kubernetes."""
    lines = [json.dumps({"device": device}), *(json.dumps({"expr": text}) for text in texts)]
    found = subprocess.run([oracle, "-stream"], input="\n".join(lines), capture_output=True, text=True, check=True)
    return [json.loads(line) for line in found.stdout.splitlines()]


def again(judge: Judge, text: str, device: Device) -> float:
    """The seconds a selector takes when it is not remembered; the first time may have paid for something else."""
    selector._programs.clear()
    selector._verdicts.clear()
    started = time.process_time()
    judge.verdict(text, device=device)
    return time.process_time() - started


def class_of(want: str, got: str, detail: str, message: str) -> str:
    """What a difference has in common with others: the verdicts and the shape of the messages."""
    text = message if got in ("compile", "unsupported", "error") else detail
    text = text.removeprefix("compilation failed: ").split("\n")[0]
    text = re.sub(r"^ERROR: <input>:\d+:\d+: ", "", re.sub(r" \(line \d+, column \d+\).*", "", text))
    return f"{want} here {got}: {re.sub(r'[0-9]+', '0', text)[:100]}"


def texts_of(options: argparse.Namespace, name: str, device: dict[str, Any], share: int) -> list[str]:
    if not options.vectors:
        generator = Generator(options.seed, device)
        return [generator.selector() for _ in range(share)]
    files = [json.loads((VECTORS / file).read_text()) for file in ("own.json", "dra-cel.json", "dra-generated.json")]
    return sorted({case["expr"] for file in files for case in file["cases"]})


def compare(options: argparse.Namespace, devices: dict[str, Any]) -> Iterator[tuple[str, str, str, str, float]]:
    """For each selector: the class of its difference or nothing, its text, the verdicts, the seconds it took here."""
    judge = Judge()
    judge.verdict('"warm".matches("up")')
    for name, raw in devices.items():
        device = Device.read({"name": name, "deviceClassName": "any.example.com", **raw}, name)
        if not isinstance(device, Device):
            continue
        texts = texts_of(options, name, raw, options.count // len(devices))
        for text, answer in zip(texts, ask(options.oracle, raw, texts), strict=True):
            started = time.process_time()
            got, message = judge.verdict(text, device=device)
            took = time.process_time() - started
            if took > SLOW:
                took = min(took, again(judge, text, device))
            if "steps that one evaluation may take" in message:
                got, message = judge.verdict(text, selector.Budget(10**8, 10**9), device)
            want = answer["want"]
            kind = "" if got == want else class_of(want, got, answer["detail"], message)
            if not kind and options.costs and got in ("true", "false", "error"):
                cost = selector.compile(text).worst_cost
                kind = f"cost {'under' if cost < answer['cost'] else 'over'}" if cost != answer["cost"] else ""
                message = f"{cost} for {answer['cost']}"
            yield (
                kind,
                f"[{name}] {text}  <{message.splitlines()[0] if message else answer['detail'][:200]}>",
                want,
                got,
                took,
            )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("oracle", help="the built program of this folder")
    parser.add_argument("--count", type=int, default=2000, help="selectors to generate, over all devices")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--devices", default="", help="names of own.json, separated by commas; all if empty")
    parser.add_argument("--vectors", action="store_true", help="the selectors of all vector files on each device")
    parser.add_argument("--costs", action="store_true", help="compare cost estimates as well")
    options = parser.parse_args()
    known = json.loads((VECTORS / "own.json").read_text())["devices"]
    devices = {name: known[name] for name in options.devices.split(",") if name} or known
    devices = {name: raw for name, raw in devices.items() if name not in ("malformed", "unset", "lists")}

    classes: dict[str, list[str]] = collections.defaultdict(list)
    verdicts: collections.Counter[str] = collections.Counter()
    written: collections.Counter[str] = collections.Counter()
    slowest = (0.0, "")
    total = 0
    for kind, shown, want, got, took in compare(options, devices):
        total += 1
        verdicts[want] += 1
        slowest = max(slowest, (took, shown))
        if kind and (got == "unsupported" or (want, got) == DIFFERENT.get(shown.split("] ", 1)[1].split("  <")[0])):
            written[got] += 1
        elif kind:
            classes[kind].append(shown)
    different = 0
    for kind, found in sorted(classes.items(), key=lambda item: -len(item[1])):
        print(f"{len(found):5}  {kind}")
        different += len(found)
        for shown in sorted(found, key=len)[:SHOWN]:
            print(f"         {shown}")
    counts = dict(sorted(verdicts.items()))
    print(f"{total} selectors {counts}: {different} differ, {sum(written.values())} as written down")
    print(f"slowest here {slowest[0] * 1000:.1f} ms: {slowest[1][:200]}")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
