"""How much of anything there may be, where more than one part of the project has to know: each bound once.

Who checks a quantity, sends it, shows it, records it and reads it back goes by the same number, or what one lets pass
another stumbles over when a world is played in it.
"""

MAX_NAME = 64
"""Characters of a name: of a key, a session, a worker."""
MAX_TEXT = 2048
"""Characters of a sentence, or of an environment's field."""
MAX_COUNT = 1 << 62
"""Every number that counts is below this: blocks, epochs, key changes, seeds."""
MAX_BLOB_BYTES = 16 << 20
"""Of one message's bulk: a manifest, or a block's pictures."""
MAX_MESSAGE_BYTES = MAX_BLOB_BYTES + (4 << 20)
"""Of one message between a worker and its server, and so of an entry of a record: that is a message written down."""
MAX_NODES = 1 << 17
"""Leaves and containers of one state; and so its storages, of which each leaf has one at most."""
MAX_TOLD = 1024
"""Leaves of a session that are told one by one: whoever tells, passes on and shows them does nothing else meanwhile."""
MAX_TICKET_BYTES = 512
"""Of what says how an arena may be read."""
MAX_SIDE_PX = 65_535
"""As far as a frame's header counts (docs/play-wire.md)."""
MAX_FRAMES = 256
"""Of one block, as far as a frame's header counts."""
MAX_KEYS = 255
"""Of one engine: a frame's header has a byte for the one that moved it, and 0 for none."""
LEAST_RATE, MOST_RATE = 1e-3, 1e4
"""Frames a second that can be played, recorded and reckoned with."""
MAX_THREADS = 1024
"""Of one block's arithmetic. More would be a device of its own, and starting them takes minutes."""
MAX_LIST = 64
"""Key changes in one block's closed list. What is more waits for the next block."""
MAX_EVERY = 1024
"""Blocks between two snapshots of a protected session."""
MAX_WORKERS = 64
MAX_SLOTS = 64
"""Of one worker."""
MAX_ARENA_BYTES = 1 << 44
"""Of one slot."""
MAX_WAIT_S = 3600
"""How long what comes before a move's pause may take."""
