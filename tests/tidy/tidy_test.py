#!/usr/bin/env python3
"""The rules must be able to fail: each is shown one file that breaks it and one that does not."""
import pathlib
import tempfile
import unittest

import documents
import tidy
from rules import Rules


def messages(path, text, executable=True):
    return " | ".join(message for _, message in tidy.check_file(path, text, executable))


class TidyFinds(unittest.TestCase):
    def test_upward_include(self):
        self.assertIn("downward", messages("coherence/a.cpp", '#include "bufmgr/base/page.hpp"\n'))
        self.assertIn("downward", messages("bufmgr/a.cpp", '#include "extension/engine/txn/host.hpp"\n'))
        self.assertIn("downward", messages("bufmgr/a.cpp", '#include "recovery/apply.hpp"\n'))
        self.assertIn("downward", messages("recovery/a.cpp", '#include "extension/engine/heap/row.hpp"\n'))
        self.assertIn("side by side", messages("extension/engine/heap/a.cpp", '#include "recovery/apply.hpp"\n'))
        self.assertEqual("", messages("extension/pg/a.cpp", '#include "recovery/apply.hpp"\n'))
        self.assertEqual("", messages("recovery/a.cpp", '#include "bufmgr/log/record.hpp"\n'))
        self.assertEqual("", messages("bufmgr/a.cpp", '#include "coherence/base/ids.hpp"\n'))

    def test_include_against_the_order_of_folders(self):
        upward = '#include "extension/pg/ddl/ddl.hpp"'
        self.assertEqual(1, len(list(tidy.check_line("extension/pg/txn/a.cpp", upward))))
        self.assertEqual(1, len(list(tidy.check_line("extension/pg/txn/a.cpp", '#include "extension/pg/module.hpp"'))))
        self.assertEqual(1, len(list(tidy.check_line("extension/pg/ddl/record/a.cpp", '#include "extension/pg/ddl/peer/joining.hpp"'))))
        self.assertEqual(1, len(list(tidy.check_line("extension/pg/ddl/new/a.cpp", '#include "extension/pg/ddl/base/pg.hpp"'))))
        for path in ("extension/pg/stats/a.cpp", "extension/pg/ddl/a.cpp", "extension/pg/module.cpp", "tests/a.cpp"):
            self.assertEqual([], list(tidy.check_line(path, upward)))
        for path, header in (("coherence/pool/a.cpp", "coherence/member/node.hpp"), ("coherence/member/a.cpp", "coherence/session.hpp"),
                             ("coherence/member/a.cpp", "coherence/transport/shm/peers.hpp"), ("coherence/transport/a.cpp", "coherence/transport/shm/peers.hpp"),
                             ("bufmgr/log/a.cpp", "bufmgr/session.hpp"), ("bufmgr/a.cpp", "bufmgr/space/space_map.hpp"),
                             ("extension/engine/txn/a.cpp", "extension/engine/heap/row.hpp"),
                             ("coherence/transport/tcp/memory/a.cpp", "coherence/transport/tcp/member/lease.hpp"),
                             ("coherence/transport/tcp/member/a.cpp", "coherence/transport/tcp/network_worker.hpp"),
                             ("extension/pg/workers/a.cpp", "extension/pg/stats/sampler.hpp"), ("extension/pg/check/a.cpp", "extension/pg/stats/sampler.hpp")):
            self.assertIn("one way only", messages(path, f'#include "{header}"\n'))
        for path, header in (("coherence/a.cpp", "coherence/member/node.hpp"), ("coherence/transport/shm/a.cpp", "coherence/member/node.hpp"), ("coherence/member/a.cpp", "coherence/transport/memory.hpp"), ("bufmgr/space/a.cpp", "bufmgr/session.hpp"),
                             ("coherence/transport/tcp/member/a.cpp", "coherence/transport/tcp/memory/port.hpp"), ("coherence/transport/tcp/a.cpp", "coherence/transport/tcp/process/worker_process.hpp")):
            self.assertEqual("", messages(path, f'#include "{header}"\n'))

    def test_postgres_below_extension_pg(self):
        for line in ['#include "postgres.h"', '#include <utils/rel.h>', '#include "/usr/include/postgresql/15/server/c.h"']:
            self.assertIn("PostgreSQL header", messages("extension/engine/heap/a.cpp", line + "\n"))
        self.assertEqual("", messages("extension/pg/a.cpp", '#include "postgres.h"\n'))

    def test_what_is_mapped(self):
        for header in ("transport/shm/mapped_pool.hpp", "transport/shm/shm_memory.hpp", "transport/shm/shm_transport.hpp"):
            line = f'#include "coherence/{header}"\n'
            for path in ("coherence/session/a.cpp", "coherence/member/node.cpp", "bufmgr/a.cpp", "extension/engine/txn/a.cpp", "tools/gclctl/show.cpp"):
                self.assertIn("mapped-by-its-own", messages(path, line))
            for path in ("coherence/transport/shm/shm_transport.cpp", "coherence/open_transport.cpp", "tools/gclctl/restart.cpp", "tests/unit/a.cpp"):
                self.assertNotIn("mapped-by-its-own", messages(path, line))
        for header in ("pool/pool.hpp", "transport/shm/local_pool.hpp"):
            self.assertEqual("", messages("bufmgr/a.cpp", f'#include "coherence/{header}"\n'))

    def test_header_without_guard(self):
        self.assertIn("pragma once", messages("bufmgr/a.hpp", "int x;\n"))

    def test_long_file(self):
        self.assertIn("split", messages("bufmgr/a.cpp", "int x;\n" * 501))

    def test_long_readme(self):
        for path in ("README.md", "bufmgr/README.md"):
            self.assertIn("801 words", messages(path, "one word\n" * 400 + "more\n"))
            self.assertEqual("", messages(path, "one word\n" * 400))
        self.assertEqual("", messages("bufmgr/rules.md", "one word\n" * 1000))

    def test_long_line(self):
        prose, link = "word " * 25, "[a](https://x.y/" + "z" * 120 + ")"
        for path, text in (("docs/a.md", f"{prose}.\n"), ("docs/a.md", f"- {prose}.\n"), ("docs/a.md", f"word {link}\n"),
                           ("docs/a.md", f"```\nx\n```\n{prose}.\n"), ("bufmgr/a.cpp", f"// {prose}.\n"), ("bufmgr/a.cpp", f"int x;  // {prose}.\n"),
                           ("bufmgr/a.cpp", f"/* x\n * {prose}. */\n")):
            self.assertIn("max 120", messages(path, text), text)
        for path, text in (("docs/a.md", "x" * 120 + "\n"), ("docs/a.md", f"| {prose} |\n"), ("docs/a.md", f"# {prose}.\n"), ("docs/a.md", f"{link}\n"),
                           ("docs/a.md", f"- {link}.\n"), ("docs/a.md", f"  ```\n{prose}.\n  ```\n"), ("docs/a.md", f"```\n~~~\n{prose}.\n```\n"),
                           ("bufmgr/a.cpp", f'run("{prose}.");\n'), ("tests/a.py", f"# {prose}.\n")):
            self.assertEqual("", messages(path, text), text)

    def test_unused_name(self):
        self.assertIn("PageId is not used", messages("bufmgr/a.cpp", "using coherence::PageId;  // not PageId\n"))
        self.assertEqual("", messages("bufmgr/a.cpp", "using coherence::PageId;\nPageId page;\n"))

    def test_source_in_source(self):
        self.assertIn("includes a source", messages("tests/a.cpp", '#include "bufmgr/page.cpp"\n'))

    def test_command_that_cannot_be_run(self):
        self.assertIn("chmod", messages("bench/a.py", "#!/usr/bin/env python3\n", executable=False))
        self.assertEqual("", messages("bench/a.py", "#!/usr/bin/env python3\n"))
        self.assertEqual("", messages("bench/a.py", "import os\n", executable=False))

    def test_chance_and_leftovers_and_blanks(self):
        self.assertIn("interface", messages("coherence/a.cpp", "int x = rand();\n"))
        self.assertEqual("", messages("coherence/a.cpp", "int x = env.rand();\n"))
        self.assertIn("leftover", messages("coherence/a.cpp", "// TO" + "DO later\n"))
        self.assertIn("trailing", messages("README.md", "word \n"))
        self.assertIn("snake_case", messages("coherence/BadName.cpp", "int x;\n"))

    def sql(self, text):
        return messages("extension/pg/a.cpp", f'constexpr const char* kQuery = R"sql({text})sql";\n')

    def test_sentences_have_their_subject(self):
        for words in ("He waits.", "whoever dies first", "the page of him", "It is free. Who waits looks again."):
            self.assertTrue(messages("bufmgr/a.cpp", f"// {words}\n"), words)
            self.assertTrue(messages("bufmgr/rules.md", f"{words}\n"), words)
        for words in ("Who goes next:", "the session that waits", "which node asks, and who is meant"):
            self.assertFalse(messages("bufmgr/a.cpp", f"// {words}\n"), words)
        self.assertFalse(messages("bufmgr/a.cpp", "net::Who who;\n"))

    def test_names_in_sql_have_a_schema(self):
        for name, text in (("pg_class", "SELECT 1 FROM pg_class"), ("pg_am", "SELECT 1 FROM pg_catalog.pg_class c, pg_am a"),
                           ("pg_am", "SELECT 1 FROM (SELECT 2 FROM pg_catalog.pg_class JOIN pg_am ON true) x"), ("md5", "SELECT md5('x')"),
                           ("md5", "WITH a AS (SELECT md5('x')) SELECT * FROM a"), ("unnest", "SELECT 1 FROM unnest($1) AS g(oid)"),
                           ("text", "SELECT $1::text"), ("'pg_class'", "SELECT 'pg_class'::pg_catalog.regclass"),
                           ('"C"', "SELECT relname COLLATE \"C\" FROM pg_catalog.pg_class"), ("pg_depend", "UPDATE pg_depend SET objid = 1"),
                           ("pg_am", "DELETE FROM pg_am"), ("b", "WITH a AS (SELECT 1) SELECT * FROM a JOIN b ON true")):
            self.assertIn(f"{name} has no schema", self.sql(text))
        self.assertIn("pg_class has no", messages("extension/pg/a.cpp", 'run("UPDATE x.y SET a = 1 FROM"\n    " pg_class");\n'))
        self.assertEqual("", self.sql("""
            WITH RECURSIVE a(b, c) AS (SELECT * FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2)) AS g(x, y) UNION SELECT 1, 2 FROM a),
                d AS MATERIALIZED (SELECT coalesce(pg_catalog.min(b), 0) AS b FROM a, LATERAL (VALUES (1)) v (k))
            SELECT pg_catalog.string_agg(relname, ', ' ORDER BY relname COLLATE pg_catalog."C")::pg_catalog.text, b::bigint
            FROM pg_catalog.pg_class JOIN d ON b IS DISTINCT FROM 1 WHERE oid = ANY ($1) AND 'pg_catalog.pg_class'::pg_catalog.regclass = tableoid
            GROUP BY b, c"""))
        self.assertEqual("", messages("extension/pg/a.cpp", 'errhint("Use SELECT * FROM t");  // "SELECT 1 FROM t"\n'))
        self.assertIn("pg_class has no", messages("sql/a.sql", "CREATE VIEW v AS SELECT 1 FROM gcl_x() x JOIN pg_class c ON true;\n"))
        self.assertEqual("", messages("sql/a.sql", "CREATE VIEW v AS SELECT 1 FROM gcl_x();\nSELECT f();\n"))

    def test_what_documents_refer_to(self):
        with tempfile.TemporaryDirectory() as folder:
            document = pathlib.Path(folder) / "A.md"
            document.write_text("# Two words, and `more`\n", encoding="ascii")
            tree = {"docs/A.md": document, "docs": None, "bufmgr/page.hpp": None, "bufmgr": None, "README.md": None}
            for text in ("[a](B.md)", "[a](../nowhere/)", "[a](../../README.md)", "[a](#three-words)", "`bufmgr/frame.hpp`", "`other/page.hpp`"):
                self.assertEqual([2], [line for line, _ in documents.broken("docs/A.md", "\n" + text, tree)], text)
            for text in ("[a](A.md#two-words-and-more)", "[a](../bufmgr/)", "[a](https://x.y/z)", "`bufmgr/page.hpp`", "```\n[a](B.md)\n```"):
                self.assertEqual([], documents.broken("docs/A.md", "\n" + text, tree), text)
            self.assertEqual([1], [line for line, _ in documents.broken("bufmgr/page.hpp", "// as {}.md says".format("DESIGN"), tree)])
            self.assertEqual([], documents.broken("bufmgr/page.hpp", "// as README.md says", tree))

    def test_named_rules(self):
        rules = Rules()
        rules.note("a/rules.md", "- **area.one-writer** *One writer.* At most one.\n")
        rules.note("a/b.hpp", "// area.two-words: a rule that a header states\n")
        cases = {"see area.one-writer, and area.two-words.": 0, "see area.no-such": 1, "no_area.no-such": 0, "area.no-such.cpp": 0, "area.low -1": 0}
        for text, expected in cases.items():
            self.assertEqual(expected, len(list(rules.broken("a/c.cpp", text))), text)
        rules.note("a/c.hpp", "\n// area.one-writer: once more\n")
        self.assertEqual([2], [line for line, _ in rules.broken("a/c.hpp", "// area.one-writer: once more")])

    def test_rules_that_python_states(self):
        rules = Rules()
        rules.note("a/b.py", '"""Of a module.\n\narea.in-docstring: one\n    and its second line\n"""\n# area.in-comment: two\n'
                             'def f():\n    """area.of-function: three"""\n    return """\narea.in-text: none\n"""\n')
        self.assertEqual({("area", "in-docstring"): [("a/b.py", 3)], ("area", "in-comment"): [("a/b.py", 6)], ("area", "of-function"): [("a/b.py", 8)]},
                         rules.stated)
        self.assertEqual(["area.in-text is stated nowhere"], [message for _, message in rules.broken("a/c.hpp", "// area.of-function, area.in-text")])
        again = '\n"""area.in-docstring: once more"""\n'
        rules.note("a/c.py", again)
        self.assertEqual([2], [line for line, _ in rules.broken("a/c.py", again)])


if __name__ == "__main__":
    unittest.main()
