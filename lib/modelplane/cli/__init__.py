"""The command line: `modelplane function`, `render` and `plan`.

Each command imports what it needs when it runs, so that a function starts fast.
"""

import click

from modelplane.cli.function import function


class _Lazy(click.Group):
    """A group whose simulation commands are imported only when they are named."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return ["function", "plan", "render"]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name == "function":
            return function
        if cmd_name == "plan":
            from modelplane.cli.plan import plan

            return plan
        if cmd_name == "render":
            from modelplane.cli.render import render

            return render
        return None


@click.command(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="modelplane")
def main() -> None:
    """Modelplane: one inference fleet from GPU clusters on any cloud."""
