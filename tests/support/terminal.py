"""A process on a terminal of its own, and what its screen shows."""

from __future__ import annotations

import fcntl
import os
import re
import struct
import subprocess
import termios
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

PATIENCE = 90.0
"""Seconds for something that is certain to happen."""

_CODE = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])|\x1b.|([\r\n])|([^\x1b\r\n]+)", re.DOTALL)


def screen(written: str, width: int, height: int) -> list[str]:
    """The rows of a terminal after what was written to it, as far as these views write."""
    rows, row, column = [""] * height, 0, 0
    for arguments, command, control, text in _CODE.findall(written):
        count = int(arguments) if arguments.isdigit() else 1
        if control == "\r":
            column = 0
        elif control == "\n":
            row, rows = (row, [*rows[1:], ""]) if row == height - 1 else (row + 1, rows)
        elif command == "A":
            row = max(0, row - count)
        elif command == "H":
            row = column = 0
        elif command == "K":
            rows[row] = ""
        elif command == "J":
            rows = [""] * height
        for character in text:
            if column == width:
                row, rows = (row, [*rows[1:], ""]) if row == height - 1 else (row + 1, rows)
                column = 0
            ahead = rows[row].ljust(column)
            rows[row] = ahead[:column] + character + ahead[column + 1 :]
            column += 1
    return [one.rstrip() for one in rows]


@dataclass
class Terminal:
    """What a process has written to its terminal, and a keyboard."""

    width: int
    height: int
    process: subprocess.Popen[bytes]
    keyboard: int
    written: str = ""
    changed: threading.Condition = field(default_factory=threading.Condition)

    def wait_for(self, seen: Callable[[list[str]], bool]) -> list[str]:
        """The screen, once it is as it is to be; fails where it never is."""
        with self.changed:
            found = self.changed.wait_for(lambda: seen(self.screen()), PATIENCE)
            assert found, "\n".join(self.screen())
            return self.screen()

    def screen(self) -> list[str]:
        return screen(self.written, self.width, self.height)

    def press(self, keys: bytes) -> None:
        os.write(self.keyboard, keys)

    def ends(self) -> int:
        """The process's exit code; everything it wrote is there then."""
        code = self.process.wait(PATIENCE)
        with self.changed:
            assert self.changed.wait_for(lambda: self.keyboard < 0, PATIENCE)
        return code

    def _read(self) -> None:
        data = b" "
        while data:
            try:
                data = os.read(self.keyboard, 65536)
            except OSError:  # the last who had the terminal is gone
                data = b""
            with self.changed:
                self.written += data.decode(errors="replace")
                self.changed.notify_all()
        with self.changed:
            os.close(self.keyboard)
            self.keyboard = -1
            self.changed.notify_all()


@contextmanager
def terminal(argv: Sequence[str], width: int, height: int, **env: str) -> Iterator[Terminal]:
    """Run a command on a new terminal; at the end it is killed if it still runs."""
    outer, inner = os.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
    plain = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES", "NO_COLOR")}
    process = subprocess.Popen(
        argv,
        stdin=inner,
        stdout=inner,
        stderr=inner,
        env=plain | {"TERM": "xterm-256color", "PYTHONUTF8": "1"} | env,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(inner)
    found = Terminal(width, height, process, outer)
    reader = threading.Thread(target=found._read, daemon=True)
    reader.start()
    try:
        yield found
    finally:
        process.kill()
        process.wait()
        reader.join(PATIENCE)
