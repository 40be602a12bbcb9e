"""scripts/fetch_isolation_suite.sh: which package it asks apt for, and what it says when it gets none."""
import io
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/fetch_isolation_suite.sh"
FILES = ("specs/a.spec", "expected/a.out", "isolation_schedule")


class Fetch(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="gcl-scripts-"))
        self.addCleanup(shutil.rmtree, self.dir)
        (self.dir / "bin").mkdir()
        self.program("dpkg-query", "case $* in *source:Package*) echo postgresql-15 ;; *) echo 15.1-1 ;; esac")
        self.program("apt-get", f'echo "$@" >>{self.dir}/asked; echo no network; exit 100')
        self.program("apt-cache", "true")

    def program(self, name, text):
        path = self.dir / "bin" / name
        path.write_text(f"#!/bin/sh\n{text}\n", "ascii")
        path.chmod(0o755)

    def package_is_there(self, version="*"):
        with tarfile.open(self.dir / "it.orig.tar.gz", "w:gz") as tar:
            for name in (*(f"src/test/isolation/{file}" for file in FILES), "src/backend/main.c"):
                info = tarfile.TarInfo(f"postgresql-15.1/{name}")
                info.size = len(name)
                tar.addfile(info, io.BytesIO(name.encode()))
        self.program("apt-get", f'echo "$@" >>{self.dir}/asked\ncase $* in *" source "*={version}) cp {self.dir}/it.orig.tar.gz . ;; *" source "*) exit 100 ;; esac')

    def fetch(self, **environment):
        done = subprocess.run([SCRIPT, self.dir / "suite"], env={"PATH": f"{self.dir}/bin:/usr/bin:/bin", **environment}, cwd="/",
                              stdin=subprocess.DEVNULL, text=True, capture_output=True, timeout=50, check=False)
        asked = self.dir / "asked"
        return done.returncode, done.stderr, asked.read_text("ascii") if asked.exists() else ""

    def found(self):
        folder = self.dir / "suite"
        return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())

    def test_the_source_of_exactly_the_installed_server_is_taken_once(self):
        self.package_is_there()
        code, said, asked = self.fetch()
        self.assertEqual((0, ""), (code, said))
        self.assertIn(" source --download-only postgresql-15=15.1-1\n", asked)
        self.assertEqual(sorted(f"15.1-1/{file}" for file in FILES), self.found())
        self.assertEqual("15.1-1", os.readlink(self.dir / "suite/of-15.1-1"))
        os.unlink(self.dir / "asked")
        self.assertEqual((0, "", ""), self.fetch())

    def test_another_version_is_taken_where_it_is_named(self):
        self.package_is_there()
        self.assertIn("postgresql-15=15.0-1\n", self.fetch(GCL_ISOLATION_SUITE_VERSION="15.0-1")[2])
        self.assertEqual(sorted(f"15.0-1/{file}" for file in FILES), self.found())

    def test_where_the_archive_has_lost_it_the_newest_that_it_has_is_taken(self):
        self.program("apt-cache", "printf 'postgresql-15 | %s | http://archive Sources\\n' 14.9-1 15.0-1 14.10-1; echo 'postgresql-15 | 16-1 | x Packages'")
        self.package_is_there("14.10-1")
        code, _, asked = self.fetch()
        self.assertEqual(0, code)
        self.assertEqual(["15.1-1", "15.0-1", "14.10-1"], re.findall(r"postgresql-15=(\S+)\n", asked))
        self.assertEqual("14.10-1", os.readlink(self.dir / "suite/of-15.1-1"))
        os.unlink(self.dir / "asked")
        self.assertEqual((0, "", ""), self.fetch())

    def test_without_a_network_it_says_so_and_leaves_nothing(self):
        code, said, _ = self.fetch()
        self.assertEqual(1, code)
        for text in ("no network", "postgresql-15 15.1-1", "Is there a network"):
            self.assertIn(text, said)
        self.assertEqual([], list((self.dir / "suite").iterdir()))


if __name__ == "__main__":
    unittest.main(verbosity=2)
