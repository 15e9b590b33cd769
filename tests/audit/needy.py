"""An engine's module that needs what is not there."""

import a_module_that_is_not_there as engine  # type: ignore[import-not-found]  # noqa: F401
