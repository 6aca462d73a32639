"""Where work is done: in threads, in several processes, or on Ray, with the same answer to the bit."""

from justright.engines.file_rows import FileRows, row_shards
from justright.engines.ordered_map import Engine, OpenEngine, in_process, threads
from justright.utils.registry import Registry

ENGINES: Registry[OpenEngine] = Registry("engine")
ENGINES.add("local", "justright.engines.ordered_map:open_local", "threads of this process")
ENGINES.add("processes", "justright.engines.processes:open_processes", "several processes of this machine")
ENGINES.add("ray", "justright.engines.ray_engine:open_ray", "a Ray cluster; install 'justright[ray]'")
