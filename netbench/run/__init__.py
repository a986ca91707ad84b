"""Runs campaigns. `netbench.run(...)` calls this package as netbench.api.run."""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    def __call__(self, *args: Any, **keys: Any) -> Any:
        return import_module("netbench.api").run(*args, **keys)


sys.modules[__name__].__class__ = _Callable
