"""``python -m worldmove.worker JSON``, started by a host: a worker's process, with what it imports set aside."""

import gc

gc.disable()  # until the worker has settled: an import leaves no garbage, and looking for it is a sixth of its time

from worldmove.worker.process import main  # noqa: E402

gc.freeze()
main()
