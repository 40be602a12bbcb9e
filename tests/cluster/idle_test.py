"""A cluster in which nothing happens sleeps, and nothing is late for that: what the member worker does when it is woken."""
import re
import time
import unittest

from harness import Cluster, SqlError, eventually

SECONDS = 5
ATTEMPTS_MAX = 120.0  # seconds of attempts
OFTEN = ("gcl message worker", "gcl provider")  # these look about four times a second, all others once (workers.events-wake)


def sleeps_of(pid):
    """How often the process has given up the processor by itself."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("voluntary_ctxt_switches"))


class Idle(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=3, settings=("autovacuum=off",)))
        cls.one, cls.two, cls.three = (cls.cluster.session(k) for k in (1, 2, 3))
        cls.one.run("CREATE TABLE t (id int PRIMARY KEY, v int) USING gcl; INSERT INTO t VALUES (1, 0), (2, 0)")
        cls.members = [cls.cluster.workers(k)["gcl member"] for k in (1, 2, 3)]

    def wakeups(self, pids):
        before = [sleeps_of(pid) for pid in pids]
        time.sleep(SECONDS)
        return [sleeps_of(pid) - count for pid, count in zip(pids, before)]

    def test_the_member_worker_of_an_idle_primary_sleeps(self):
        """A sample each second; the best of several attempts, for a machine may be busy with something."""
        eventually(lambda: max(self.wakeups(self.members)) <= 4 * SECONDS, ATTEMPTS_MAX)

    def test_every_worker_of_an_idle_primary_sleeps(self):
        """What each of them is woken for besides is an event; the best of several attempts."""
        workers = [(name, pid) for k in (1, 2, 3) for name, pid in self.cluster.workers(k).items()]
        self.assertLessEqual(set(OFTEN), {name for name, _ in workers})

        def restless():
            counts = self.wakeups([pid for _, pid in workers])
            return [(name, count) for (name, _), count in zip(workers, counts) if count > (6 if name in OFTEN else 3) * SECONDS]

        eventually(lambda: not restless(), ATTEMPTS_MAX)

    def test_it_sleeps_while_a_session_of_another_primary_waits_for_a_row(self):
        self.one.run("BEGIN; UPDATE t SET v = v + 1 WHERE id = 1")
        self.two.send("UPDATE t SET v = v + 1 WHERE id = 1")
        self.assertTrue(self.two.blocked())
        # It also searches for deadlocks, four times in a second.
        eventually(lambda: max(self.wakeups(self.members)) <= 20 * SECONDS, ATTEMPTS_MAX)
        self.one.run("COMMIT")
        self.two.result()

    def test_vacuum_waits_for_no_primary_that_sleeps(self):
        """The best of several attempts: a machine may crawl."""
        def at_once(session):
            session.run("INSERT INTO t SELECT g, g FROM generate_series(10, 500) g; DELETE FROM t WHERE id >= 10")
            time.sleep(0.3)  # all fall asleep again
            began = time.monotonic()
            said = " ".join(session.run("VACUUM VERBOSE t"))
            return re.search(r"49\d line pointers freed", said) and time.monotonic() - began < 0.2

        for session in (self.one, self.two):
            eventually(lambda session=session: at_once(session), ATTEMPTS_MAX)

    def test_a_reader_that_ends_lets_vacuum_go_on(self):
        """Its primary publishes that at once, though the clock stands still."""
        def at_once():
            self.three.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t")
            self.one.run("INSERT INTO t SELECT g, g FROM generate_series(10, 500) g; DELETE FROM t WHERE id >= 10")
            time.sleep(0.3)
            self.three.run("COMMIT")
            time.sleep(0.1)
            return re.search(r"49\d line pointers freed", " ".join(self.one.run("VACUUM VERBOSE t")))

        eventually(at_once, ATTEMPTS_MAX)

    def test_deadlocks_and_waits_are_seen_though_all_sleep(self):
        for session in (self.one, self.two):
            session.run("SET deadlock_timeout = '100ms'")
        for _ in range(3):
            time.sleep(0.3)
            self.one.run("BEGIN; UPDATE t SET v = v + 1 WHERE id = 1")
            self.two.run("BEGIN; UPDATE t SET v = v + 1 WHERE id = 2")
            self.one.send("UPDATE t SET v = v + 1 WHERE id = 2")
            self.two.send("UPDATE t SET v = v + 1 WHERE id = 1")
            states = []
            for session in (self.one, self.two):
                try:
                    session.result()
                except SqlError as error:
                    states.append(error.state)
            self.assertEqual(["40P01"], states)
            for session in (self.one, self.two):
                session.run("ROLLBACK")


if __name__ == "__main__":
    unittest.main()
