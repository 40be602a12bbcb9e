"""What a later version of gcl would have written is refused by its number, and nothing is changed; for that version it is all there
(docs/UPGRADING.md, which names the other tests of formats)."""
import contextlib
import mmap
import re
import unittest

from harness import SERVES, Cluster, SqlError, eventually


@contextlib.contextmanager
def written_by_another(path, before, after):
    """The file has other bytes of the same number meanwhile."""

    def replace(old, new):
        with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as content:
            at = content.find(old)
            assert at >= 0, f"{old} is not in {path}"
            content[at:at + len(old)] = new

    replace(before, after)
    try:
        yield
    finally:
        replace(after, before)


class LaterFormats(unittest.TestCase):
    def setUp(self):
        self.cluster = self.enterContext(Cluster(primaries=3))
        self.cluster.sql(1, "CREATE TABLE t (id int PRIMARY KEY) USING gcl; INSERT INTO t VALUES (1)")

    def refused(self, k, sql):
        session = self.cluster.session(k)
        with self.assertRaises(SqlError) as caught:
            session.run(sql)
        self.assertEqual("55000", caught.exception.state, caught.exception)
        return "\n".join(line for line in session.collected if line)

    def test_the_description_of_a_cluster(self):
        c = self.cluster
        postmasters = [c.postmaster(k) for k in (1, 2, 3)]
        with written_by_another(f"{c.dir}/cluster.conf", b"# pg_gcl cluster, format 1", b"# pg_gcl cluster, format 2"):
            for arguments in (("status",), ("stop",), ("start",), ("upgrade",), ("checkpoint",), ("verify",), ("destroy",),
                              ("remove-primary", "--node", "2")):
                with self.subTest(arguments):
                    done = c.ctl(arguments[0], c.dir, *arguments[1:], check=False)
                    self.assertEqual(1, done.returncode, done.stdout)
                    self.assertEqual(f"gclctl: {c.dir}/cluster.conf has format 2, and format 1 is read here; a later version of gclctl "
                                     "wrote it: use that one\n", done.stderr)
        self.assertEqual(postmasters, [c.postmaster(k) for k in (1, 2, 3)])

    def test_the_file_of_a_data_directory(self):
        c = self.cluster
        c.sql(3, "CREATE TABLE own (id int) USING heap; INSERT INTO own VALUES (3)")
        c.stop(3)
        life = f"{c.dir}/node3/data/gcl_ddl/life"
        with written_by_another(life, b"1efillcg", b"2efillcg"):
            c.start(3)
            self.assertEqual(["3"], c.sql(3, "SELECT id FROM own"))
            for sql in ("SELECT * FROM t", "INSERT INTO t VALUES (3)"):
                said = self.refused(3, sql)
                self.assertRegex(said, "the data directory of primary 3 was last used by a later version of gcl")
                self.assertRegex(said, 'DETAIL:  Its file gcl_ddl/life has version "2", and version "1" is read here.')
                self.assertRegex(said, "HINT:  Use that version. The local tables of this primary can be read as ever.")
            self.assertNotIn("damaged", c.log(3))
            self.assertEqual(["1"], c.sql(1, "SELECT * FROM t"))
            c.stop(3)
        c.start(3)
        c.sql(3, "INSERT INTO t VALUES (3)")

    def test_a_record_of_ddl(self):
        c = self.cluster
        c.stop(2)
        c.sql(1, "CREATE TABLE made_meanwhile (a int) USING gcl")
        c.stop(1)  # its pages are in the pool
        with open(f"{c.pool_dir()}/pool", "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as pool:
            records = set(re.findall(rb"DDLA.{4}CREATE TABLE made_meanwhile", pool, re.S))
        self.assertEqual(1, len(records))
        record = records.pop()
        with written_by_another(f"{c.pool_dir()}/pool", record, b"DDLB" + record[4:]):
            c.start(2)
            told = r'the log of DDL has a record of version "B", and version "A" is read here\n.*HINT:  Another version of gcl wrote it: use that one'
            eventually(lambda: re.search(told, c.log(2)))
            self.refused(2, "SELECT * FROM t")
            self.assertNotRegex(c.log(2), "malformed|damaged")
            self.assertEqual(["1"], c.sql(3, "SELECT * FROM t"))
            c.stop(2)  # it has that page
        c.start(2)
        eventually(lambda: c.sql(2, SERVES) == ["serving"], 60)
        c.sql(2, "INSERT INTO made_meanwhile VALUES (2)")
        c.start(1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
