"""What the README shows is what happens: the excerpt is real output, the commands run, the links lead somewhere."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, re.DOTALL)
COMMANDS = [
    line.strip().removeprefix("$ ")
    for language, block in BLOCKS
    if language == "console"
    for line in block.splitlines()
    if re.match(r"\s*\$ \.venv/bin/modelplane (plan|render) ", line) and "live.yaml" not in line
]


def run(command: str) -> str:
    done = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_excerpt_is_what_the_demo_prints() -> None:
    (excerpt,) = (block for language, block in BLOCKS if language == "text")
    assert excerpt in run(".venv/bin/modelplane plan examples/getting-started")


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_run(command: str) -> None:
    assert run(command)


def test_output_shown_below_a_command_is_its_output() -> None:
    shown = {}
    for _, block in BLOCKS:
        command, _, output = block.removeprefix("$ ").partition("\n")
        if command in COMMANDS and output and not output.startswith("$ "):
            shown[command] = output
    assert shown
    for command, output in shown.items():
        assert output in run(command), command


def test_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text() + (ROOT / "schemas" / "schemas.mk").read_text()
    for target in set(re.findall(r"`make ([a-z0-9-]+)`", README)) | set(re.findall(r"\$ make ([a-z0-9-]+)", README)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_links_lead_somewhere() -> None:
    for link in re.findall(r"\]\(([^)#]+)\)", README):
        assert link.startswith("https://") or (ROOT / link).exists(), link
    for file in re.findall(r"(?:examples|apis|package)/[\w./-]+\.(?:yaml|py)|package/Containerfile", README):
        assert (ROOT / file).exists(), file
