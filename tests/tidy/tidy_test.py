#!/usr/bin/env python3
"""The rules must be able to fail: each is shown one file that breaks it and one that does not."""
import unittest

import tidy


def messages(path, text, executable=True):
    return " | ".join(message for _, message in tidy.check_file(path, text, executable))


class TidyFinds(unittest.TestCase):
    def test_upward_include(self):
        self.assertIn("downward", messages("coherence/a.cpp", '#include "bufmgr/page.hpp"\n'))
        self.assertIn("downward", messages("bufmgr/a.cpp", '#include "extension/engine/host.hpp"\n'))
        self.assertEqual("", messages("bufmgr/a.cpp", '#include "coherence/base/ids.hpp"\n'))

    def test_postgres_below_extension_pg(self):
        for line in ['#include "postgres.h"', '#include <utils/rel.h>', '#include "/usr/include/postgresql/15/server/c.h"']:
            self.assertIn("PostgreSQL header", messages("extension/engine/heap/a.cpp", line + "\n"))
        self.assertEqual("", messages("extension/pg/a.cpp", '#include "postgres.h"\n'))

    def test_header_without_guard(self):
        self.assertIn("pragma once", messages("bufmgr/a.hpp", "int x;\n"))

    def test_long_file(self):
        self.assertIn("split", messages("bufmgr/a.cpp", "int x;\n" * 501))

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


if __name__ == "__main__":
    unittest.main()
