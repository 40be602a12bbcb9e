"""Isolation specs: the grammar of PostgreSQL's isolationtester, as far as the specs here need it.

    setup { SQL }        teardown { SQL }
    session NAME  setup { SQL }  step NAME { SQL } ...  teardown { SQL }
    permutation STEP STEP ...                       none: every interleaving of the sessions' steps

What isolationtester takes for a comment may be a directive here:

    # on 1: s1 s3                     these sessions on one primary; otherwise the k-th is on primary k, and so round
    # unseen STEP ...: reason         on several primaries the step's wait is not in pg_locks; it is seen by its length
    # differs STEP /regex/: reason    on several primaries the step answers something else than one server, namely this
"""
import itertools
import re
from dataclasses import dataclass, field

TOKEN = re.compile(r'\s*(?:(?P<comment>#[^\n]*)|(?P<sql>\{)|"(?P<quoted>[^"]*)"|(?P<word>[\w-]+))')


@dataclass
class Session:
    name: str
    setup: str = ""
    teardown: str = ""
    steps: list = field(default_factory=list)


@dataclass
class Spec:
    name: str
    setup: list = field(default_factory=list)
    teardown: str = ""
    sessions: list = field(default_factory=list)
    permutations: list = field(default_factory=list)
    explicit: bool = False  # the spec lists its permutations
    on: dict = field(default_factory=dict)  # session -> primary
    unseen: set = field(default_factory=set)
    differs: dict = field(default_factory=dict)  # step -> regex

    def __post_init__(self):
        self.sql, self.owner = {}, {}


def tokens(text):
    """(kind, text) of each token; a block in braces is one."""
    at = 0
    while match := TOKEN.match(text, at):
        at = match.end()
        if match.lastgroup == "sql":
            end = text.index("}", at)
            yield "sql", text[at:end].strip()
            at = end + 1
        else:
            yield ("name" if match.lastgroup == "quoted" else match.lastgroup), match.group(match.lastgroup)
    if text[at:].strip():
        raise ValueError(f"not understood: {text[at:at + 60]!r}")


def directive(spec, comment):
    if match := re.match(r"# on (\d+): (.*)", comment):
        spec.on.update({name: int(match.group(1)) for name in match.group(2).split()})
    elif match := re.match(r"# unseen ([\w ]+): \S", comment):
        spec.unseen.update(match.group(1).split())
    elif match := re.match(r"# differs (\w+) /(.*)/: \S", comment):
        spec.differs[match.group(1)] = re.compile(match.group(2), re.S)
    elif re.match(r"# (on|unseen|differs)\b", comment):
        raise ValueError(f"not understood: {comment}")


def parse(name, text):
    spec, session, words = Spec(name), None, iter(list(tokens(text)))
    key, permutation = None, None
    for kind, token in words:
        if kind == "comment":
            directive(spec, token)
        elif kind == "word" and token in ("setup", "teardown", "session", "step", "permutation"):
            key, permutation = token, None
            if key == "session":
                session = Session(next(words)[1])
                spec.sessions.append(session)
            elif key == "step":
                step = next(words)[1]
                session.steps.append(step)
                spec.owner[step] = session.name
            elif key == "permutation":
                permutation = []
                spec.permutations.append(permutation)
        elif kind == "sql" and key == "setup":
            if session:
                session.setup += token
            else:
                spec.setup.append(token)
        elif kind == "sql" and key == "teardown":
            if session:
                session.teardown += token
            else:
                spec.teardown += token
        elif kind == "sql" and key == "step":
            spec.sql[step] = token
        elif permutation is not None and kind in ("word", "name"):
            permutation.append(token)
        else:
            raise ValueError(f"{name}: unexpected {token!r}")
    spec.explicit = bool(spec.permutations)
    spec.permutations = spec.permutations or list(interleavings([s.steps for s in spec.sessions]))
    for step in itertools.chain(*spec.permutations, spec.unseen, spec.differs):
        if step not in spec.sql:
            raise ValueError(f"{name}: no step {step}")
    return spec


def interleavings(sequences):
    sequences = [s for s in sequences if s]
    if not sequences:
        yield []
    for k, sequence in enumerate(sequences):
        for rest in interleavings(sequences[:k] + [sequence[1:]] + sequences[k + 1:]):
            yield [sequence[0], *rest]
