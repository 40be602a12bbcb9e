"""Named rules: `area.two-words-or-more`.  A rule is stated once, and what is cited is stated.

A statement begins a list item of a document (- **area.name** ...), a comment's line (// area.name: ...), or a line of a
Python docstring (area.name: ...).  Every other place that has the name cites it.  An area is one that has a statement
somewhere, so that no list of areas is kept.
"""
import ast
import re

NAME = r"([a-z][a-z0-9_]*)\.([a-z0-9]+(?:-[a-z0-9]+)+)"
STATED = re.compile(rf"^(?:\s*- \*\*{NAME}\*\*|\s*(?://|#|--) +{NAME}: )", re.M)
STATED_IN_DOCSTRING = re.compile(rf"^\s*(?:[rR]?(?:\"{{3}}|'{{3}}|[\"']))? *{NAME}: ")
NAMED = re.compile(rf"(?<![\w./-]){NAME}(?![\w/-]|\.(?:cpp|hpp|py|sh|sql|md|cmake|conf)\b)")


def docstring_lines(text):
    """Lines of a Python source that are in docstrings: (line number, line)"""
    lines = text.split("\n")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and ast.get_docstring(node, clean=False) is not None:
            said = node.body[0]
            yield from enumerate(lines[said.lineno - 1 : said.end_lineno], said.lineno)


class Rules:
    """Reads all files first (`note`), then tells what is wrong in each of them (`broken`)."""

    def __init__(self):
        self.stated = {}  # (area, name) -> [(path, line number)]

    def note(self, path, text):
        for found in STATED.finditer(text):
            rule = (found.group(1) or found.group(3), found.group(2) or found.group(4))
            self.stated.setdefault(rule, []).append((path, text.count("\n", 0, found.end()) + 1))
        for number, line in docstring_lines(text) if path.endswith(".py") else ():
            if found := STATED_IN_DOCSTRING.match(line):
                self.stated.setdefault(found.groups(), []).append((path, number))

    def broken(self, path, text):
        """(line number, message)"""
        areas = {area for area, _ in self.stated}
        for rule, places in self.stated.items():
            for other, number in places[1:]:
                if other == path:
                    yield number, f"{'.'.join(rule)} is stated in {places[0][0]}:{places[0][1]} already"
        for cited in NAMED.finditer(text):
            if cited.group(1) in areas and cited.groups() not in self.stated:
                yield text.count("\n", 0, cited.start()) + 1, f"{cited.group(0)} is stated nowhere"
