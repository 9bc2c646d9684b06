"""The command line: `modelplane function`, `render` and `plan`.

Each command imports what it needs when it runs, so that a function starts fast.
"""

import importlib

import click

COMMANDS = ("function", "plan", "render")


class _Lazy(click.Group):
    """A group whose commands are imported only when they are named."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(importlib.import_module(f"modelplane.cli.{cmd_name}"), cmd_name)
        return command


@click.command(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="modelplane")
def main() -> None:
    """Modelplane: one inference fleet from GPU clusters on any cloud."""
