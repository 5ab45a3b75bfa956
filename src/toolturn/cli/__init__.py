"""The command line.

Exit codes: 0 an answer, or the command did what it was asked; 1 a turn ended without an answer, or the command
failed; 2 wrong usage; 130 interrupted by Ctrl-C, 143 by SIGTERM.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; without its extra, say in one sentence how to get it."""
    try:
        from .commands import toolturn
    except ImportError as exc:
        if exc.name != "click":
            raise
        sys.exit("the command line needs the extra 'cli': pip install 'toolturn[cli]'")
    toolturn()
