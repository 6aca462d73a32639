"""Imported by the server from which workers are forked: all that one of them would else import itself."""

from __future__ import annotations

from benchmarks.forked import import_everything

import_everything()
