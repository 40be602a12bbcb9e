#!/usr/bin/env python3
"""Rules of the code base that a machine can check.  Usage: tidy.py ROOT; prints violations, exit 1 if there are any.

1. Layers: includes point one way only (extension/pg -> extension/engine, recovery -> bufmgr -> coherence), and nothing
   below extension/pg includes a PostgreSQL header.  So do those between folders (FOLDERS).  What says where the pool is
   mapped (MAPPED) is included by files that may touch it there (pool.mapped-by-its-own).
2. Names: .hpp and .cpp are ours, in snake_case; every header says #pragma once.
3. Size: a file of ours has fewer than 500 lines; a README.md has at most 800 words.
4. The core takes time and chance from interfaces: no sleep, rand or random_device below extension/pg.
5. What a file takes from another namespace by name, it uses; and no source includes a source.
6. Text: no trailing blanks, no tabs in C++, no leftovers (TODO, FIXME, XXX).
7. What begins with #! can be run as it is.
8. SQL in extension/pg, and in the views of the extension's script, names no relation, function, type or collation without
   its schema (sql_names.py); in the script, the extension's own have the schema that it is created in.
9. Links of documents, and the paths of files that they name, lead somewhere (documents.py).
10. A named rule is stated once, and what is cited is stated (rules.py).
11. Sentences have their subject: neither he nor whoever, in C++ comments and documents, and none begins with a Who that
    asks nothing.
12. Prose of documents, and lines of C++ with a comment, have at most 120 characters.  Exempt in a document: tables, code
    blocks, headings, and a line that is one link.
"""
import os
import pathlib
import re
import sys

import documents
import sql_names
from rules import Rules

LAYERS = ["coherence", "bufmgr", "recovery", "extension/engine", "extension/pg"]
APART = {"recovery", "extension/engine"}  # side by side: neither includes the other
# The lowest first.  Files that are in none of them wire all together, and come last, or where "" stands.
FOLDERS = {
    "coherence": ["base", "stats", "latch", "line", "message", "trace", "transport", "pool", "region", "member", "transport/tcp", "transport/verbs", "transport/shm", "session", "inspect"],
    "coherence/transport": ["", "net", "tcp", "verbs", "shm"],
    "coherence/transport/tcp": ["base", "memory", "member", "message", "process"],
    "bufmgr": ["base", "frame", "log", "", "space", "inspect", "examples"],
    "extension/engine": ["memory", "stop", "txn", "serializable", "heap", "blink", "check", "sequence", "ddl", "reclaim", "sweep", "waitgraph", "samples", "restart"],
    "extension/pg": ["boundary", "runtime", "catalog", "txn", "sequence", "indexam", "tableam", "ddl", "check", "workers", "stats"],
    "extension/pg/ddl": ["base", "record", "node", "objects", "classify", "replay", "coordinate", "peer"],
}
MAPPED = re.compile(r"coherence/transport/shm/(?!local_pool\.)\w+\.hpp")
MAY_TOUCH_MAPPED = re.compile(r"coherence/transport/shm/|coherence/open_transport\.cpp|tools/gclctl/restart\.cpp|tools/memnode/|tests/|bench/")
LINES_MAX = 500
README_WORDS_MAX = 800
WIDTH_MAX = 120
CODE = {".hpp", ".cpp"}
TEXT = CODE | {".py", ".sh", ".cmake", ".sql", ".md"}
POSTGRES = re.compile(
    r'#\s*include\s*[<"]((postgres(_ext|_fe)?|fmgr|c|miscadmin|funcapi|libpq-fe|pg_config)\.h'
    r"|(access|catalog|commands|executor|libpq|nodes|optimizer|parser|postmaster|replication|storage|tcop|utils)/[a-z_0-9/]+\.h"
    r"|[^>\"]*postgresql/)"
)
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"')
CHANCE = re.compile(r"\b(std::random_device|std::rand|srand|rand_r|(?<![\w:.>])rand)\s*[({;]|std::this_thread::sleep")
COMMENT = re.compile(r"//.*")
USING = re.compile(r"^\s*using (?:\w+::)+(\w+);", re.M)
NO_SUBJECT = re.compile(r"\b([Hh]e|[Hh]im|[Ww]hoever)\b|(?:^|[.:*]) *(?:// *)?Who (?!may\b|goes\b|is\b)[a-z]")
NO_PROSE = re.compile(r"\s*(?:[|#]|(?:[-*+] )?(?:\[[^\]]*\]\(\S+\)|<?https?://\S+)[.,;]?$)")
CODE_BLOCK = re.compile(r" *(```|~~~)")
LEFTOVER = re.compile(r"\b(TODO|FIXME|XXX)\b")


def layer_of(path):
    """Index of the layer that owns a path, or None."""
    for index, layer in enumerate(LAYERS):
        if path.startswith(layer + "/"):
            return index
    return None


def folder_of(parent, path):
    """Place of the folder of `parent` in its order; -1: one that is not listed, and may include no other; None: not below `parent`."""
    if not path.startswith(parent + "/"):
        return None
    order = FOLDERS[parent] if "" in FOLDERS[parent] else FOLDERS[parent] + [""]
    folders = str(pathlib.PurePath(path).parent.relative_to(parent)).split("/")
    if folders == ["."]:
        return order.index("")
    for depth in (2, 1):  # a folder in a folder may have a place of its own
        if "/".join(folders[:depth]) in order:
            return order.index("/".join(folders[:depth]))
    return -1


def check_line(path, line):
    """Violations of one line of C++."""
    mine = layer_of(path)
    include = INCLUDE.match(line)
    if mine is not None and include:
        theirs = layer_of(include.group(1))
        if theirs is not None and theirs > mine:
            yield f"{LAYERS[mine]} includes {include.group(1)}: includes point downward only"
        elif theirs is not None and theirs != mine and {LAYERS[mine], LAYERS[theirs]} == APART:
            yield f"{LAYERS[mine]} includes {include.group(1)}: the two layers stand side by side"
        for parent in FOLDERS:
            mine_there, theirs_there = folder_of(parent, path), folder_of(parent, include.group(1))
            if mine_there is not None and theirs_there is not None and theirs_there > mine_there:
                yield f"{include.group(1)} is included: the folders of {parent} include one way only (FOLDERS)"
    if include and MAPPED.fullmatch(include.group(1)) and not MAY_TOUCH_MAPPED.match(path):
        yield f"{include.group(1)} is included: the pool is reached by verbs and Membership here (pool.mapped-by-its-own)"
    below_pg = mine is not None and mine < LAYERS.index("extension/pg")
    if (below_pg or path.startswith("tests/unit/")) and POSTGRES.search(line):
        yield "a PostgreSQL header below extension/pg"
    if below_pg and CHANCE.search(line):
        yield "time and chance come from an interface here"
    if include and include.group(1).endswith(".cpp"):
        yield "a source includes a source"
    if "\t" in line:
        yield "a tab"


def unused_names(text):
    """What a source takes by name from another namespace and leaves alone: (line number, message)."""
    code = COMMENT.sub("", text)
    for using in USING.finditer(code):
        if len(re.findall(rf"\b{using.group(1)}\b", code)) == 1:
            yield code.count("\n", 0, using.start(1)) + 1, f"{using.group(1)} is not used here"


def long_lines(suffix, lines):
    """Prose that is too wide: (line number, message)"""
    block = None  # how the code block that the line is in began
    for number, line in enumerate(lines, 1):
        if suffix == ".md":
            edge = CODE_BLOCK.match(line)
            if edge and block in (None, edge.group(1)):
                block = None if block else edge.group(1)
            prose = not edge and not block and not NO_PROSE.match(line)
        else:
            prose = COMMENT.search(line) or line.lstrip().startswith(("/*", "* "))
        if prose and len(line) > WIDTH_MAX:
            yield number, f"{len(line)} characters; wrap it (max {WIDTH_MAX})"


def names_in_sql(path, text):
    """(line number, message)."""
    if path.startswith("extension/pg/"):
        texts, own = sql_names.sql_in(text), None
    else:
        views = re.finditer(r"^CREATE VIEW \w+ AS\s+(.*?);", text, re.M | re.S)
        texts, own = ((text.count("\n", 0, view.start(1)) + 1, view.group(1)) for view in views), r"gcl_\w+"
    for first, sql in texts:
        for line, name in sql_names.unqualified(sql, own):
            yield first + line, f"{name} has no schema: anybody's search_path would say which one it is"


def check_file(path, text, executable=True):
    """Violations of one file: (line number, message)."""
    suffix = pathlib.PurePath(path).suffix
    lines = text.split("\n")
    if suffix in CODE:
        if not re.fullmatch(r"[a-z0-9_]+\.[hc]pp", pathlib.PurePath(path).name):
            yield 1, "file names are snake_case"
        if suffix == ".hpp" and "#pragma once" not in text:
            yield 1, "no #pragma once"
        if len(lines) > LINES_MAX:
            yield len(lines), f"{len(lines)} lines; split it by verb (max {LINES_MAX})"
    if pathlib.PurePath(path).name == "README.md" and len(text.split()) > README_WORDS_MAX:
        yield 1, f"{len(text.split())} words; rules.md, design.md and rationale.md beside it have room (max {README_WORDS_MAX})"
    if suffix == ".cpp":
        yield from unused_names(text)
    if suffix in CODE or suffix == ".md":
        yield from long_lines(suffix, lines)
    if path.startswith("sql/") or (suffix in CODE and path.startswith("extension/pg/")):
        yield from names_in_sql(path, text)
    if text.startswith("#!") and not executable:
        yield 1, "a command that cannot be run: chmod +x"
    if text and not text.endswith("\n"):
        yield len(lines), "no newline at the end"
    for number, line in enumerate(lines, 1):
        if line != line.rstrip():
            yield number, "trailing blanks"
        if LEFTOVER.search(line) and not path.startswith("tests/tidy/"):
            yield number, "a leftover: do it or open an issue"
        prose = line if suffix == ".md" else "".join(COMMENT.findall(line)) if suffix in CODE else ""
        if NO_SUBJECT.search(prose):
            yield number, "a sentence without its subject: name the session, node, process or person"
        if suffix in CODE:
            for message in check_line(path, line):
                yield number, message


def tree_of(root):
    """Path -> file or folder."""
    made = re.compile(r"^(build[^/]*|\.git|\.cache)(/|$)")
    paths = ((file.relative_to(root).as_posix(), file) for file in sorted(root.rglob("*")))
    return {path: file for path, file in paths if not made.match(path)}


def files_of(tree):
    skip = re.compile(r"/expected/|/(output_iso|results|tmp_check)/")
    for path, file in tree.items():
        if file.is_file() and file.suffix in TEXT and not skip.search(path):
            yield path, file.read_text(encoding="utf-8", errors="strict"), os.access(file, os.X_OK)


def main():
    root = pathlib.Path(sys.argv[1])
    tree = tree_of(root)
    files = list(files_of(tree))
    rules = Rules()
    for path, text, _ in files:
        rules.note(path, text)
    bad = 0
    for path, text, executable in files:
        for number, message in [*check_file(path, text, executable), *documents.broken(path, text, tree), *rules.broken(path, text)]:
            bad += 1
            print(f"{path}:{number}: {message}")
    print(f"{len(files)} files, {len(rules.stated)} named rules, {bad} violations")
    return 1 if bad or not files else 0


if __name__ == "__main__":
    sys.exit(main())
