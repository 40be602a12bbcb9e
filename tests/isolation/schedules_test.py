"""Random schedules: several sessions step by step on one stock PostgreSQL server with heap tables, and on three primaries
with gcl tables.  Which sessions answer, with what, which wait, which go on behind which step, and what is in the tables in
the end: all must be the same.

    GCL_SEED=N SEEDS=N SECONDS=N python3 schedules_test.py       seeds from N on; a seed's schedule is always the same

What differs is played again, slowly and on one server several times: only what one server always does, and several do not, is a
failure.  It is made as small as it can be and printed.  VERBOSE=1 prints the others, too.

Differences that are meant, and how they are left out:
  which of several waiters goes on first  one that comes to wait for a session or row that another waits for gives up (Play.queues)
  NOWAIT, SKIP LOCKED that wait           PostgreSQL's do for the locker of a newer version than is seen: the schedule ends before
  a deadlock's victim                     the schedule ends with it
  which of several bad rows is met first  every scan is by an index (interleaved.SETTINGS)
"""
import difflib
import os
import random
import time
import unittest

from interleaved import EVERYTHING, KEYS, ROWS, SETTINGS, TABLES, Player
from schedule import CANCEL, Deadlock, Differs, Play, check, finish, replay, shown
from side_by_side import SideBySide

from harness import Hang  # isort: skip

SEED = int(os.environ.get("GCL_SEED", 1))
SEEDS = int(os.environ.get("SEEDS", 15))  # at least; and as many as SECONDS have time for
SECONDS = float(os.environ.get("SECONDS", 0))
VERBOSE = bool(os.environ.get("VERBOSE"))
OPTIONS = f"-c deadlock_timeout=100ms {SETTINGS}"
NAMES = ("one", "two", "three", "four")
PACE = 0.2  # seconds between steps, when it is asked whether a difference is one of speed


class Schedules(SideBySide):
    options = OPTIONS

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for servers in (cls.one, cls.several):
            servers.session("main", 1).run(TABLES)

    def sessions(self, servers, primaries):
        return {name: servers.session(name, k) for name, k in primaries.items()}

    def reset(self, servers):
        servers.session("main", 1).run(ROWS)

    def content(self, servers):
        """All tables, by every index, as each primary sees them."""
        return [servers.session("main", k).run(";\n".join(f"SELECT 'X', $${query}$$;\n{query}" for query in EVERYTHING))
                for k in range(1, len(servers.dsns) + 1)]

    def invent(self, seed):
        """The seed's schedule, played on one server: the Play, whether it came to its end, and where its sessions are."""
        chance = random.Random(seed)
        names = NAMES[:chance.choice((2, 3, 3, 4))]
        # The fourth session, and sometimes another one, has a neighbour on its primary.
        primaries = {name: k % 3 + 1 if chance.random() < 0.9 else chance.randint(1, 3) for k, name in enumerate(names)}
        self.reset(self.one)
        play = Play(self.sessions(self.one, primaries))
        hot = chance.randint(1, KEYS)  # where they meet
        players = {name: Player(chance, hot) for name in names}
        try:
            for _ in range(chance.randint(10, 40)):
                if not play.free():
                    break  # find_deadlock has looked: they wait for each other
                name = chance.choice(play.free())
                sql = players[name].next()
                self.step(play, players, name, sql)
                if name in play.waiting and ("NOWAIT" in sql or "SKIP LOCKED" in sql):
                    # PostgreSQL waits all the same for the locker of a newer version of the row than it sees.
                    play.steps.pop(), play.places.pop()
                    raise Deadlock
                # Which of two waiters goes on first is not said, mostly not on one server either.
                gives_up = [name] if name in play.waiting and play.queues(name) else []
                if play.waiting and not gives_up and chance.random() < 0.08:
                    gives_up = [chance.choice(list(play.waiting))]
                for name in gives_up:
                    self.step(play, players, name, CANCEL)
            finish(play, lambda name: "COMMIT" if chance.random() < 0.7 else "ROLLBACK")
        except Deadlock:
            return play, False, primaries
        finally:
            play.clean_up()
        return play, True, primaries

    def step(self, play, players, name, sql):
        for who, answer in play.find_out(name, sql).items():
            players[who].told(*answer)

    def difference(self, play, whole, primaries, pace=0.0):
        """What several primaries do otherwise than one server, or None."""
        self.reset(self.several)
        try:
            check(self.sessions(self.several, primaries), play, pace)
        except (Differs, Hang) as differs:
            return differs
        if whole:
            expected = self.content(self.one)[0]
            for k, seen in enumerate(self.content(self.several), 1):
                if seen != expected:
                    differs = Differs("\n".join([f"on primary {k} the tables differ:", *difflib.unified_diff(expected, seen, "one server", "primary",
                                                                                                      lineterm="")]))
                    differs.play, differs.expected = play, []
                    return differs
        return None

    def replayed(self, steps, primaries):
        self.reset(self.one)
        return replay(self.sessions(self.one, primaries), steps)

    def smallest(self, steps, primaries, pace):
        """As few steps as still make a difference."""
        deadline = time.monotonic() + 60
        k = len(steps) - 1
        while k >= 0 and time.monotonic() < deadline:
            fewer = steps[:k] + steps[k + 1:]
            try:
                play, whole = self.replayed(fewer, primaries)
            except Hang:
                k -= 1
                continue
            if self.difference(play, whole, primaries, pace):
                steps = fewer
            k -= 1
        return steps

    def report(self, seed, play, whole, primaries, differs):
        print(f"\nseed {seed}: {differs}; GCL_SEED={seed} SEEDS=1", flush=True)
        # One server may answer now so, now otherwise, when two go on at the same moment.
        plays = [self.replayed(play.steps, primaries)[0].places for _ in range(3)]
        if any(again[:len(play.places)] != play.places for again in plays):
            print(f"seed {seed}: one server does not always do the same, either", flush=True)
            if VERBOSE:
                self.show(play, differs, primaries)
                for again in plays:
                    for k, (events, otherwise) in enumerate(zip(play.places, again)):
                        if events != otherwise:
                            print(f"  === but {play.steps[k]}: {otherwise}")
                            break
            return False
        self.replayed(play.steps, primaries)
        if not self.difference(play, whole, primaries, PACE):
            print(f"seed {seed}: not when it is played slowly", flush=True)
            self.show(play, differs, primaries)
            return False
        steps = self.smallest(play.steps, primaries, 0.05)
        play, whole = self.replayed(steps, primaries)
        self.show(play, self.difference(play, whole, primaries, PACE), primaries)
        return True

    def show(self, play, differs, primaries):
        print("  primaries:", primaries)
        for k, ((name, sql), events) in enumerate(zip(play.steps, play.places)):
            print(f"  {name}: {sql}")
            for event in events:
                print(f"      {shown(event)}")
            if differs and k == len(differs.play.steps) - 1 and differs.expected:
                print("  === but on several primaries")
                for event in differs.play.places[-1]:
                    print(f"      {shown(event)}")
                break
        print(f"  {differs}", flush=True)

    def test_schedules_go_as_on_one_server(self):
        began, seeds, steps, waits, deadlocks, bad = time.monotonic(), 0, 0, 0, 0, []
        while seeds < SEEDS or time.monotonic() - began < SECONDS:
            seed = SEED + seeds
            seeds += 1
            play, whole, primaries = self.invent(seed)
            steps += len(play.steps)
            waits += sum(event[1] == "waits" for events in play.places for event in events)
            deadlocks += not whole
            differs = self.difference(play, whole, primaries)
            if differs and self.report(seed, play, whole, primaries, differs):
                bad.append(seed)
        print(f"seeds {SEED} to {SEED + seeds - 1}: {steps} steps, {waits} waited, {deadlocks} deadlocks, {time.monotonic() - began:.1f} s", flush=True)
        self.assertEqual([], bad)
        self.assertGreater(waits, seeds // 4, "hardly a step met another's lock")


if __name__ == "__main__":
    unittest.main()
