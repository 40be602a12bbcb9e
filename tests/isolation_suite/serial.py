"""Whether some serial order of a permutation's transactions gives what they have seen and left.

    judge = Judge(spec, dsn of a plain server)
    judge.order(outcome)        a list of transactions, or None

Transactions that have to be tried again (40001, 40P01), or have not ended, have done nothing.  All others, those included that
end with another error, are played one after the other on heap tables: each step must answer the same, and all tables be the same
in the end.
"""
import itertools
import re

from deferred import SpecSession, state_of


class Judge:
    def __init__(self, spec, dsn):
        self.spec = spec
        self.setups = {session.name: session.setup for session in spec.sessions}
        self.session = SpecSession(dsn, ("-q", "-P", "null=NULL"))
        self.known = {}

    def close(self):
        self.session.close()

    def order(self, outcome):
        done = [transaction for transaction in outcome.transactions if not transaction.again()]
        # Two-phase locking gives the order of the ends: it is tried first.
        for order in itertools.permutations(done):
            if self.explains(order, outcome):
                return list(order)
        return None

    def explains(self, order, outcome):
        if not in_order_of_session(order, outcome.transactions):
            return False
        answers, state = self.serially(order)
        return state == outcome.state and all(
            self.same(step, here, there) for transaction, serial in zip(order, answers)
            for step, here, there in zip(transaction.steps, transaction.answers, serial))

    def same(self, step, here, there):
        if re.search(r"order\s+by", self.spec.sql[step], re.I):
            return here == there
        return sorted(here) == sorted(there)

    def serially(self, order):
        key = tuple(transaction.key() for transaction in order)
        if key not in self.known:
            self.known[key] = self.play(order)
        return self.known[key]

    def play(self, order):
        for block in self.spec.setup:
            self.session.run(block)
        answers = []
        for transaction in order:
            if transaction.first:
                self.session.raw(self.setups[transaction.session])
            answers.append([self.session.raw(self.spec.sql[step]) for step in transaction.steps])
            self.session.raw("ROLLBACK")
        state = state_of(self.session)
        if self.spec.teardown:
            self.session.run(self.spec.teardown)
        return answers, state


def in_order_of_session(order, transactions):
    places = {id(transaction): place for place, transaction in enumerate(transactions)}
    last = {}
    for transaction in order:
        if last.get(transaction.session, -1) > places[id(transaction)]:
            return False
        last[transaction.session] = places[id(transaction)]
    return True
