"""A ledger that is a dict: the rules are the real ones."""

from worldmove.move.ledger_rules import decide


class InMemoryLedger:
    """Rows that die with the test."""

    def __init__(self):
        self.kept = {}

    async def create(self, row):
        if row.session in self.kept:
            return False
        self.kept[row.session] = row
        return True

    async def ask(self, operation, facts):
        row, answer = decide(self.kept[operation.session], operation, facts)
        self.kept[operation.session] = row
        return answer

    async def row(self, session):
        return self.kept.get(session)

    async def rows(self):
        return tuple(self.kept[name] for name in sorted(self.kept))

    async def forget(self, session):
        self.kept.pop(session, None)
