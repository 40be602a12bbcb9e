"""Names in SQL that the extension runs, or keeps as a view: each says that it is of pg_catalog, so that nobody's search_path leads it
elsewhere.  Operators cannot say it in a readable way: pg_catalog is the first schema they are looked for in, and pg_temp is never one."""
import re

TOKEN = re.compile(r"--[^\n]*|E?'(?:[^']|'')*'|\"[^\"]+\"|::|[A-Za-z_]\w*|\$?\d+|\S")
NAME = re.compile(r"[A-Za-z_]\w*|\"[^\"]+\"")
IS_SQL = re.compile(r"\s*\(?(SELECT|UPDATE|INSERT|DELETE|WITH)\s")
# Words before a parenthesis that name no function, and types that are words of the grammar.
GRAMMAR = set("""all and any array as between by case coalesce else exists filter from greatest in is join lateral least materialized not
    nullif on or over rows select then union using values when where with""".split())
TYPES = set("bigint boolean char int integer numeric real smallint".split())
ENDS_FROM = set("where group order union limit select set returning having window".split())
# One literal, or several in a row; a raw one.
LITERALS = re.compile(r'R"(\w*)\((.*?)\)\1"|"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*', re.S)
COMMENT = re.compile(r"//[^\n]*")


def sql_in(code):
    """SQL in a C++ source: (line number, text)."""
    code = COMMENT.sub("", code)
    for found in LITERALS.finditer(code):
        raw = found.group(0).startswith("R")
        text = found.group(2) if raw else re.sub(r'"\s*"', "", found.group(0)[1:-1]).replace('\\"', '"')
        if IS_SQL.match(text):
            yield code.count("\n", 0, found.start()) + 1, text


def defined_in(sql):
    """Names that WITH gives."""
    return {name.lower() for name in re.findall(r"(?:\bWITH(?:\s+RECURSIVE)?|\),)\s+(\w+)\s*(?:\([^()]*\)\s*)?AS\s", sql)}


def unqualified(sql, own=None):
    """What is named without a schema: (line of the text, name).  Names that match `own` are the extension's."""
    tokens = [(t.group(0), sql.count("\n", 0, t.start())) for t in TOKEN.finditer(sql) if not t.group(0).startswith("--")]
    words = [token.lower() for token, _ in tokens] + ["", "", "", ""]
    here = defined_in(sql)
    clauses = [None]  # of each open parenthesis: whether a relation comes next, may come after a comma, or cannot
    for i, (token, line) in enumerate(tokens):
        word, before, after = words[i], words[i - 1] if i else "", words[i + 1]
        if word == "(":
            inner = clauses[-1] == "next" and after not in ("select", "with", "values") and words[i - 2] != "rows"
            clauses[-1] = "listed" if clauses[-1] == "next" else clauses[-1]
            clauses.append("next" if inner else None)
            continue
        if word == ")":
            clauses.pop()
            continue
        is_name = NAME.fullmatch(token) and before != "."
        bad = False
        if word in ("from", "join", "update", "into") and before != "distinct":
            clauses[-1] = "next"
        elif word == "," and clauses[-1] == "listed":
            clauses[-1] = "next"
        elif word in ENDS_FROM:
            clauses[-1] = None
        elif clauses[-1] == "next" and word not in ("lateral", "only", "rows"):
            clauses[-1] = "listed"
            bad = is_name and after != "." and word not in here
        elif is_name and after == "(" and word not in GRAMMAR:
            is_alias = before == ")" or before == "as" or (NAME.fullmatch(before) and before not in GRAMMAR | ENDS_FROM | {"distinct"})
            bad = not is_alias and word not in here
        if before in ("::", "collate"):
            bad = is_name and after != "." and word not in TYPES
        if token.startswith("'") and words[i + 1:i + 5] == ["::", "pg_catalog", ".", "regclass"]:
            bad = "." not in token
        if bad and not (own and re.fullmatch(own, word)):
            yield line, token
