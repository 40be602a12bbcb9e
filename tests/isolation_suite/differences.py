"""Where the outputs of two runs of a spec differ, and what of that tests/accepted/isolation accepts.

    hunks(heap's output, gcl's)                 [Hunk]: lines with - (heap alone) and + (gcl alone), of one permutation
    hunks(heap's, gcl's, Notices.ANYWHERE)      the same, but notices of each session count by themselves
    accepted = Accepted(path)
    accepted.judge("one", spec, hunks)          those that no line accepts
    accepted.unused("one")                      lines that accepted nothing
"""
import dataclasses
import difflib
import enum
import re

BEGIN = "\nstarting permutation:"
NOTICE = re.compile(r"(s\d+): NOTICE: ")
LINE = re.compile(r"(?P<spec>[\w-]+) (?P<kind>differs|refused|sometimes|unspread) /(?P<pattern>.*)/: (?P<reason>\S.*)")


@dataclasses.dataclass
class Hunk:
    permutation: str
    text: str
    refusals: str = ""  # what gcl alone has said in this permutation until here, this included


def permutations(output):
    """(the steps' names, what was printed), the first: before all."""
    parts = output.split(BEGIN)
    return [("", parts[0])] + [tuple(part.split("\n", 1)) for part in parts[1:]]


def hunks_of(permutation, left, right):
    found, said = [], ""
    matcher = difflib.SequenceMatcher(None, left, right, autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind != "equal":
            text = "".join(f"-{line}\n" for line in left[a:b]) + "".join(f"+{line}\n" for line in right[c:d])
            said += "".join(f"{line}\n" for line in right[c:d] if "ERROR:" in line)
            found.append(Hunk(permutation, text, said))
    return found


class Notices(enum.Enum):
    """isolationtester prints what a session was sent when it has come; whether that is before or behind the line that says that
    the session waits depends on how quick the question is whether it does."""
    IN_PLACE, ANYWHERE = range(2)


def parts(lines, notices):
    """Those that are compared with each other."""
    if notices is Notices.IN_PLACE:
        return {"": lines}
    found = {"": []}
    for line in lines:
        session = NOTICE.match(line)
        found.setdefault(session[1] if session else "", []).append(line)
    return found


def hunks(heap, gcl, notices=Notices.IN_PLACE):
    found, ours, theirs = [], permutations(heap), permutations(gcl)
    for index, (permutation, left) in enumerate(ours):
        there = index < len(theirs)
        if there and theirs[index][0] != permutation:
            raise ValueError(f"the permutations differ: {permutation} and {theirs[index][0]}")
        if not there:
            found.append(Hunk(permutation, "-the permutation\n", found[-1].refusals if found else ""))
            continue
        left, right = parts(left.splitlines(), notices), parts(theirs[index][1].splitlines(), notices)
        for part in sorted({*left, *right}):
            found += hunks_of(permutation, left.get(part, []), right.get(part, []))
    return found


@dataclasses.dataclass
class Line:
    number: int
    spec: str
    kind: str
    pattern: re.Pattern
    runs: set  # in which it holds
    used: set = dataclasses.field(default_factory=set)

    def accepts(self, hunk):
        if self.kind == "unspread":
            return False
        if self.kind == "refused":
            return self.pattern.search(hunk.refusals)
        return self.pattern.fullmatch(hunk.text.rstrip("\n"))


class Accepted:
    """Raises ValueError where a line is not understood."""

    def __init__(self, path, runs):
        self.lines, where = [], set(runs)
        for number, text in enumerate(path.read_text("utf-8").splitlines(), 1):
            if not text or text.startswith("#"):
                continue
            if text.startswith("[") and text.endswith("]"):
                where = set(text[1:-1].split())
                if not where <= set(runs):
                    raise ValueError(f"{path}:{number}: there are only runs {', '.join(runs)}")
            elif match := LINE.fullmatch(text):
                self.lines.append(Line(number, match["spec"], match["kind"], re.compile(match["pattern"], re.S), where))
            else:
                raise ValueError(f"{path}:{number}: not understood: {text}")

    def judge(self, run, spec, found):
        left = []
        for hunk in found:
            matching = [line for line in self.lines if line.spec == spec and run in line.runs and line.accepts(hunk)]
            for line in matching:
                line.used.add(run)
            if not matching:
                left.append(hunk)
        return left

    def unspread(self, run, suite):
        """The specs that are left out of a run.  Raises ValueError where the reason is not in the spec."""
        lines = [line for line in self.lines if line.kind == "unspread" and run in line.runs]
        for line in lines:
            if not line.pattern.search(suite.text[line.spec]):
                raise ValueError(f"line {line.number}: {line.spec} has no {line.pattern.pattern}")
            line.used.add(run)
        return {line.spec for line in lines}

    def waited_for(self, run):
        """The specs in which isolationtester waits until it gives up."""
        return {line.spec for line in self.lines if run in line.runs and "isolationtester" in line.pattern.pattern}

    def unused(self, run, specs):
        return [line for line in self.lines
                if run in line.runs and run not in line.used and line.spec in specs and line.kind != "sometimes"]
