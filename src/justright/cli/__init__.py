"""The command line: one file per command, each a thin layer over the library."""

from __future__ import annotations

import errno
import importlib
import os
from difflib import get_close_matches
from typing import Any

import click

from justright import __version__
from justright.utils.errors import JustrightError
from justright.utils.files import DISK_FULL_ERRORS
from justright.utils.parallel import raise_gc_threshold

COMMANDS = (  # each is a module of this folder with a click command of the same name
    "audit", "benchmark", "cache", "data", "demo", "discover", "doctor", "estimate", "evaluate", "export", "extract",
    "plan", "predict", "report", "review", "select", "settings",
)  # fmt: skip
STOPPED_BY_USER = 130
AGAIN = "then repeat the command: finished work is kept"
FREE_SPACE = f"free some disk space (`justright cache list` shows what is kept for later runs), {AGAIN}"
LARGER = f"allow larger files (`ulimit -f unlimited`), or name another place, {AGAIN}"
ADVICE = {errno.ENOSPC: FREE_SPACE, errno.EDQUOT: FREE_SPACE, errno.EFBIG: LARGER}


def prepare_process() -> None:
    """Set up a process that runs one command; called before torch is loaded, which reads the variables."""
    # Threads of torch that wait for each other sleep instead of spinning: on a machine with other work to do a step of
    # training took eight times as long with spinning.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # Some virtual machines list matrix tiles (AMX) among the features of their processor, and end a process that uses
    # them: half precision would die without a message. The level below has everything else. Float32 never uses tiles.
    os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")
    raise_gc_threshold()


class Commands(click.Group):
    """Loads a command when it is used, and shows errors that a user can fix without a traceback."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Prepare the process and run the command."""
        prepare_process()
        return super().main(*args, **extra)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names that `--help` shows."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a command and return its click command."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(importlib.import_module(f"justright.cli.{cmd_name}"), cmd_name)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """The command that the first argument names; an error names those that are spelled alike."""
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            near = " or ".join(get_close_matches(args[0], COMMANDS))
            hint = f" Did you mean {near}?" if near else ""
            ctx.fail(f"No such command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, and turn errors into messages."""
        try:
            return super().invoke(ctx)
        except JustrightError as error:
            raise click.ClickException(str(error)) from error
        except OSError as error:
            if error.errno == errno.EPIPE:  # click ends quietly on a closed pipe
                raise
            raise click.ClickException(message_of(error)) from error
        except KeyboardInterrupt:
            click.echo("\nStopped. Repeat the command to continue: finished work is kept.", err=True)
            ctx.exit(STOPPED_BY_USER)


def message_of(error: OSError) -> str:
    """The problem and what to try. Only a full disk or a limit shows that it was writing that failed."""
    problem = error.strerror or str(error) or type(error).__name__
    if error.errno in DISK_FULL_ERRORS:
        problem = f"{error.filename or 'a file'} cannot be written: {problem}"
    elif error.filename:
        problem = f"{error.filename} cannot be written or read: {problem}"
    return f"{problem}\nTry: {ADVICE.get(error.errno or 0, 'name another place')}"


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.version_option(__version__, prog_name="justright")
def main() -> None:
    """Find new categories in unlabeled images, with the labeled data that actually helps.

    \b
    Start here:
      justright demo                     everything on drawn images, offline
      justright data --list              data sets that can be used by name
      justright audit --target photos    what is wrong with my images?
      justright discover --help          from folders of images to clusters
      justright doctor                   what can be used on this machine?
    """
