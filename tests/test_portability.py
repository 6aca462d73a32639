"""What the sources need of the operating system: nothing that only POSIX has, without a check. Never run on Windows."""

from __future__ import annotations

import ast
import subprocess
import sys

from tests.import_graph import SOURCE

# missing on Windows: modules, and names of os and signal
MODULES = ("fcntl", "grp", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty")
OS_NAMES = (
    "O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "chown", "fchmod", "fork", "getegid", "geteuid", "getgid", "getloadavg",
    "getpgid", "getuid", "killpg", "mkfifo", "nice", "posix_fadvise", "posix_fallocate", "pread", "register_at_fork",
    "sched_getaffinity", "sched_setaffinity", "setsid", "statvfs", "sync", "sysconf", "uname", "wait3", "wait4",
)  # fmt: skip
SIGNAL_NAMES = ("SIGALRM", "SIGCHLD", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGUSR1", "SIGUSR2", "alarm", "setitimer")

# other packages are imported before the names are gone: how they do without them is their business
IMPORT_ALL_AS_ON_WINDOWS = f"""
import importlib, os, pkgutil, signal, sys
import justright

def import_all():
    names = [each.name for each in pkgutil.walk_packages(justright.__path__, "justright.")]
    return [importlib.import_module(name) for name in names if not name.endswith("__main__")]

kept = import_all()
for name in [name for name in sys.modules if name.partition(".")[0] == "justright"]:
    del sys.modules[name]
sys.modules.update(dict.fromkeys({MODULES!r}))
for module, names in ((os, {OS_NAMES!r}), (signal, {SIGNAL_NAMES!r})):
    for name in names:
        if hasattr(module, name):
            delattr(module, name)
import justright
again = import_all()
assert len(again) == len(kept) > 100 and not set(map(id, again)) & set(map(id, kept))

from justright.runs.measured_rates import _peak_memory
from justright.utils.parallel import n_cores
assert n_cores() >= 1 and _peak_memory() > 0
print("imported", len(again))
"""


def test_every_module_is_imported_without_posix():
    done = subprocess.run([sys.executable, "-c", IMPORT_ALL_AS_ON_WINDOWS], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("imported ")


def posix_names(tree: ast.AST) -> set[str]:
    """The names of `os` and `signal` in use that Windows lacks."""
    only = {"os": OS_NAMES, "signal": SIGNAL_NAMES}
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.attr in only.get(node.value.id, ())
    }


def test_posix_names_are_used_behind_a_check():
    offenders = []
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        for name in posix_names(tree):
            if f'hasattr(os, "{name}")' not in text and 'os.name == "posix"' not in text:
                offenders.append(f"{path.relative_to(SOURCE)} uses {name}")
        for node in tree.body:  # inside functions a missing module can be caught
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            offenders += [f"{path.relative_to(SOURCE)} imports {name}" for name in names if name in MODULES]
    assert offenders == []
