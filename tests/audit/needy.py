"""An engine's module that needs what is not there."""

from importlib import import_module

engine = import_module("a_module_that_is_not_there")
