"""What documents refer to: links, sections, and files by their paths."""
import re

LINK = re.compile(r"\]\(([^)\s]+)\)")
NAMED = re.compile(r"`((?:[\w.-]+/)*[\w-][\w.-]*\.(?:cpp|hpp|py|sh|sql|cmake))`")
DOCUMENT = re.compile(r"\b([A-Z]{4,}\.md)\b")
HEADING = re.compile(r"^#+ +(.*)$", re.M)
CODE_BLOCK = re.compile(r"^```.*?^```$", re.M | re.S)


def slug(heading):
    """How GitHub names a section."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def resolve(path, target):
    """The path in the tree that a link of the document `path` leads to."""
    parts = path.split("/")[:-1]
    for part in target.split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def sections_of(file):
    return {slug(heading) for heading in HEADING.findall(file.read_text(encoding="utf-8"))}


def broken_links(path, text, tree):
    for link in LINK.finditer(text):
        if re.match(r"[a-z]+:", link.group(1)):
            continue
        target, _, section = link.group(1).partition("#")
        there = resolve(path, target) if target else path
        if there not in tree:
            yield link.start(), f"{target} is not in the tree"
        elif section and section not in sections_of(tree[there]):
            yield link.start(), f"{there} has no section #{section}"


def broken(path, text, tree):
    """(line number, message).  `tree`: the path of every file and folder of the tree -> its pathlib.Path."""
    is_document = path.endswith(".md")
    if is_document:
        text = CODE_BLOCK.sub(lambda block: "\n" * block.group(0).count("\n"), text)
    found = list(broken_links(path, text, tree)) if is_document else []
    for name in [*DOCUMENT.finditer(text), *(NAMED.finditer(text) if is_document else ())]:
        wanted = resolve(path, name.group(1)) if name.group(1).startswith("..") else name.group(1)
        if not any(file == wanted or file.endswith(f"/{wanted}") for file in tree):
            found.append((name.start(), f"{name.group(1)} is not in the tree"))
    return [(text.count("\n", 0, at) + 1, message) for at, message in found]
