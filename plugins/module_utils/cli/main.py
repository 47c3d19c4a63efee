# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The command ``rdma-k8s``: find the command, run it, turn errors into one sentence and an exit code.

Private to rdma.k8s: it may change with any release.

Each command lives in a file of its own, which is imported when the command runs: a plan must not wait for the checks.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Optional

from .. import deps
from ..core.errors import RdmaError
from ..core.finding import EXIT_INTERNAL, EXIT_USAGE
from ..core.report.wording import flat
from .arguments import build_parser, parse
from .progress import Progress
from .terminal import OutputError, Terminal

EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Run one command.

    :param argv: the arguments behind the program's name; those of the process when not given.
    :returns: 0 good, 1 internal error or output that cannot be written, 2 usage or bad input, 3 and 4 as the command
        says, 130 interrupted, 141 when the reader of the output went away.
    """
    try:
        return _run(sys.argv[1:] if argv is None else argv)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except RdmaError as error:
        _say(str(error))
        return EXIT_USAGE
    except OutputError as lost:
        return _output_lost(lost.error)


def _run(argv: Sequence[str]) -> int:
    if "_ARGCOMPLETE" in os.environ:  # a shell asks what could come next; this answers and ends the process
        deps.argcomplete().autocomplete(build_parser(), always_complete_options="long")
    terminal = Terminal(sys.stdout)
    arguments = parse(argv, terminal)
    if arguments is None:  # help or version was printed
        terminal.flush()
        return 0
    command = importlib.import_module("." + arguments.command, __package__)
    with Progress(sys.stderr) as terminal.progress:
        code: int = command.run(arguments, terminal)
        terminal.flush()
    return code


def _output_lost(error: OSError) -> int:
    # What is still in the buffer must not be tried again when the interpreter ends.
    with contextlib.suppress(OSError, ValueError, AttributeError):  # an output that is no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        return EXIT_BROKEN_PIPE
    _say("The output cannot be written: %s." % (error.strerror or error))
    return EXIT_INTERNAL


def _say(sentence: str) -> None:
    with contextlib.suppress(OSError, AttributeError):  # nobody is there to be told
        sys.stderr.write("rdma-k8s: %s\n" % flat(sentence))
        sys.stderr.flush()


if __name__ == "__main__":
    raise SystemExit(main())
