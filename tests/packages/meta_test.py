"""META.json: what PGXN wants of it (PGXN Meta Spec 1.0.0); and one version everywhere."""
import copy
import json
import os
import re
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
REQUIRED = ("name", "version", "abstract", "maintainer", "license", "provides", "meta-spec")
KNOWN = REQUIRED + ("description", "generated_by", "no_index", "prereqs", "release_status", "resources", "tags")
SEMANTIC = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+)?")
TERM = re.compile(r"[^\s/\\\x00-\x1f\x7f]{2,}")
LICENSES = {"agpl_3", "apache_1_1", "apache_2_0", "artistic_1", "artistic_2", "bsd", "freebsd", "gfdl_1_2", "gfdl_1_3", "gpl_1",
            "gpl_2", "gpl_3", "lgpl_2_1", "lgpl_3_0", "mit", "mozilla_1_0", "mozilla_1_1", "openssl", "perl_5", "postgresql",
            "qpl_1_0", "ssleay", "sun", "zlib", "open_source", "restricted", "unrestricted", "unknown"}


def text_of(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def wrong_with(meta):
    """What the specification does not allow, a sentence each."""
    wrong = [f"{key} is missing" for key in REQUIRED if not meta.get(key)]
    wrong += [f"{key} is not known" for key in meta if key not in KNOWN and not key.lower().startswith("x_")]
    wrong += [f"{key} is no text" for key in ("abstract", "description", "generated_by")
              if not isinstance(meta.get(key, ""), str)]
    if not TERM.fullmatch(meta.get("name", "")):
        wrong.append("name is no term")
    if not SEMANTIC.fullmatch(meta.get("version", "")):
        wrong.append("version is no semantic one")
    if meta.get("license") not in LICENSES:
        wrong.append("license is none that PGXN knows")
    if meta.get("release_status", "stable") not in ("stable", "testing", "unstable"):
        wrong.append("release_status is none")
    spec = meta.get("meta-spec", {})
    if not re.fullmatch(r"1\.0\.\d+", spec.get("version", "")) or spec.get("url") != "https://pgxn.org/meta/spec.txt":
        wrong.append("meta-spec is not 1.0")
    for extension, what in meta.get("provides", {}).items():
        if not TERM.fullmatch(extension):
            wrong.append(f"{extension} is no term")
        if not SEMANTIC.fullmatch(what.get("version", "")):
            wrong.append(f"{extension} has no semantic version")
        wrong += [f"{key} of {extension} is no file" for key in ("file", "docfile")
                  if (key in what or key == "file") and not os.path.isfile(os.path.join(ROOT, what.get(key) or "/"))]
    return wrong


class Meta(unittest.TestCase):
    def setUp(self):
        self.meta = json.loads(text_of("META.json"))
        self.version = re.search(r"^project\(pg_gcl VERSION ([\d.]+)", text_of("CMakeLists.txt"), re.M)[1]

    def test_it_is_as_the_specification_wants(self):
        self.assertEqual([], wrong_with(self.meta))

    def test_what_is_wrong_is_found(self):
        for key in REQUIRED:
            broken = copy.deepcopy(self.meta)
            del broken[key]
            self.assertIn(f"{key} is missing", wrong_with(broken))
        for path, value, sentence in (
                (("version",), "1.1", "version is no semantic one"), (("name",), "pg gcl", "name is no term"),
                (("license",), "PostgreSQL License", "license is none that PGXN knows"),
                (("release_status",), "finished", "release_status is none"), (("licence",), "mit", "licence is not known"),
                (("meta-spec", "version"), "2.0.0", "meta-spec is not 1.0"),
                (("provides", "gcl", "version"), "1", "gcl has no semantic version"),
                (("provides", "gcl", "file"), "sql/gcl.sql", "file of gcl is no file"),
                (("provides", "gcl", "docfile"), "", "docfile of gcl is no file")):
            broken = copy.deepcopy(self.meta)
            place = broken
            for part in path[:-1]:
                place = place[part]
            place[path[-1]] = value
            self.assertEqual([sentence], wrong_with(broken))

    def test_one_version_everywhere(self):
        semantic = ".".join((self.version.split(".") + ["0", "0"])[:3])
        self.assertEqual(semantic, self.meta["version"])
        self.assertEqual({"gcl": semantic}, {name: what["version"] for name, what in self.meta["provides"].items()})
        control = text_of("sql", "gcl.control.in")
        self.assertEqual("@PROJECT_VERSION@", re.search(r"^default_version = '(.*)'$", control, re.M)[1])
        newest = re.match(r"pg-gcl \(([^)]+)\) bookworm; urgency=\w+\n", text_of("debian", "changelog"))
        self.assertEqual(self.version, newest[1])

    def test_the_server_is_the_one_it_is_built_for(self):
        major = re.search(r'MATCHES "PostgreSQL (\d+)', text_of("cmake", "Findgcl_postgres.cmake"))[1]
        self.assertEqual({"PostgreSQL": f">= {major}.0.0, < {int(major) + 1}.0.0"}, self.meta["prereqs"]["runtime"]["requires"])
        self.assertIn(f"\nPackage: gcl-{major}\n", text_of("debian", "control"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
