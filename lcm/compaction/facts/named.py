"""What has a name of its own: files, addresses, identifiers, people and products."""

import re
from collections.abc import Iterator

from lcm.compaction.facts.statement import ReadText, Statement
from lcm.compaction.facts.wording import label
from lcm.text import load_stop_words

_SEGMENT = r"[\w.@+%~-]+"
_PATH = re.compile(
    rf"(?<![\w.@+%~/\\:-])(?:(?:[A-Za-z]:(?:\\{_SEGMENT}){{1,30}}|(?:~|\.{{1,2}})?(?:/{_SEGMENT}){{1,30}}|{_SEGMENT}(?:/{_SEGMENT}){{1,30}})/?"
    rf"|{_SEGMENT}/(?=[\s`'\",;)]|\.?$)|[\w@+%~-][\w.@+%~-]{{0,80}}\.[A-Za-z]\w{{0,9}}|Makefile|Dockerfile)(?![\w/\\(]|://|@)"
)
_NAMED = re.compile(r"[\w-]*\w\.[A-Za-z]\w{0,9}")
_SUBSTITUTION = re.compile(r"[sy]/.+/")
_EXTENSIONS = frozenset(
    """py pyi ipynb js jsx ts tsx mjs cjs json jsonl yaml yml toml ini cfg conf env md rst txt csv tsv parquet sql sh
    bash zsh ps1 bat c h cc cpp hpp cs java kt go rs rb php swift scala r jl lua pl html htm css scss vue svelte xml svg
    png jpg jpeg gif webp pdf doc docx xls xlsx ppt pptx odt zip tar gz tgz log lock db sqlite mp3 mp4 wav proto graphql
    gradle tf dockerfile mod sum diff patch ics eml tex bib""".split()  # noqa: SIM905
)


def paths(read: ReadText) -> Iterator[Statement]:
    """A path has an extension that files have, or begins at a root (`/`, `~`, `./`), or has two separators."""
    for match in _PATH.finditer(read.text):
        said = match[0].rstrip(".,:")
        if is_file(said) and read.tells(match.start()):
            yield Statement("path", path_key(said), "", said, match.start(), match.start() + len(said))


def is_file(said: str) -> bool:
    """Whether a word with separators or a dot is a path, not "and/or", "e.g." or a host."""
    last = said.rstrip("/").replace("\\", "/").rpartition("/")[2]
    if last in ("Makefile", "Dockerfile"):
        return True
    if _NAMED.fullmatch(last.lstrip(".")) and last.rpartition(".")[2].lower() in _EXTENSIONS:
        return True
    inner = said.replace("\\", "/")
    if _SUBSTITUTION.match(inner):
        return False
    if inner.endswith("/") and inner.count("/") == 1 and inner[0].isalpha():
        return True
    is_rooted = inner.startswith(("/", "~/", "./", "../")) and inner.count("/") >= 2
    return (is_rooted or inner.rstrip("/").count("/") >= 2) and any(letter.isalpha() for letter in inner)


def path_key(path: str) -> str:
    return path.replace("\\", "/").removeprefix("./").rstrip("/").strip("`'\"")


def is_same_path(one: str, other: str) -> bool:
    """Equal, or one is the end of the other and names a folder too."""
    if one == other:
        return True
    short, long = sorted((one, other), key=len)
    return "/" in short.strip("/") and long.endswith(f"/{short.lstrip('/~')}")


_URL = re.compile(
    r"\b(?:https?|ftp|ssh|git|file|postgres(?:ql)?|redis|mongodb)://[^\s<>\"'`\\|{}^\])]{3,500}", re.IGNORECASE
)


def urls(read: ReadText) -> Iterator[Statement]:
    """A scheme, `://`, and what follows up to white space; marks that end a sentence are not part of it."""
    for match in _URL.finditer(read.text):
        said = match[0].rstrip(".,;:!?*_)")
        if read.tells(match.start()):
            yield Statement("url", said.rstrip("/"), "", said, match.start(), match.start() + len(said))


_OPAQUE = (
    r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"  # a UUID
    r"|(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{7,64}"  # a hash
    r"|[A-Z][A-Z0-9]{0,9}-\d{1,8}(?:-\d{1,8})*|[A-Z]{2,3}\d{2,6}"  # a ticket, a train
    r"|(?=[A-Za-z0-9]*\d)[a-z]{2,10}_[A-Za-z0-9]{5,40}"  # an id with its type before it
    r"|v\d+(?:\.\d+){1,3}(?:-[\w.]+)?|\d+\.\d+\.\d+(?:[-+][\w.]+)?"  # a version
    r"|(?=[A-Z0-9]*\d)(?=[A-Z0-9]*[A-Z])(?!\d+[A-Z]{1,3}\b)[A-Z0-9]{5,12}"  # a reference
)
_IDENTIFIER = re.compile(rf"(?<![\w./#@:-])(?:{_OPAQUE}|\#\d{{1,7}})(?![\w/@-]|\.\w)")
_CODE_NAME = re.compile(r"`([A-Za-z_]\w*(?:[._]\w+)+|[a-z]+(?:[A-Z]\w*)+|[A-Z]\w*[a-z]\w*[A-Z]\w*)(?:\(\))?`")
_SAYS = re.compile(r"(?:\bis(?: now)?|\bwas|[=:])\s*[`'\"*]*$", re.IGNORECASE)
_FILE_END = re.compile(r"\.[a-z]{1,5}$")


def identifiers(read: ReadText) -> Iterator[Statement]:
    """Words that no dictionary has: each is about itself, unless "is", "=" or ":" binds it to a label before it."""
    for place in read.places:
        sentence = read.words(place)
        for match in _IDENTIFIER.finditer(sentence):
            before = sentence[: match.start()]
            about = label(before, "") if _SAYS.search(before) else ""
            yield _identifier(about, match[0], place[0] + match.start())
        for match in _CODE_NAME.finditer(sentence):
            if not _FILE_END.search(match[1]):
                yield _identifier("", match[1], place[0] + match.start(1))


def _identifier(about: str, said: str, start: int) -> Statement:
    return Statement("identifier", about or said, said if about else "", said, start, start + len(said))


_CAPITAL = r"[A-ZÀ-ÖØ-Þ][\w'’&-]*\w"
_WITHIN = re.compile(rf"(?<=[a-zà-ÿ0-9,;)&–-] ){_CAPITAL}(?: (?:(?:of|de|van|von|der|the|la) )?{_CAPITAL})*")
_FIRST = re.compile(
    rf"[\s>*#-]*(?P<name>{_CAPITAL}(?: {_CAPITAL})+|"
    rf"{_CAPITAL}(?=(?:['’]s|,? (?:is|has|was|had|said|says|thinks?|knows?|"
    r"found|made|took|ate|hates?|booked|paid|will|wants?|wanted|and|"
    r"called|wrote|asked|told|lives?|works?|needs?|moved|comes?|came|gave|loves?|likes?|does|did|can)) ))"
)
_DAYS = frozenset(
    """monday tuesday wednesday thursday friday saturday sunday january february march april may june july august
    september october november december mon tue wed thu fri sat sun jan feb mar apr jun jul aug sep sept oct nov
    dec""".split()  # noqa: SIM905
)
_NO_NAMES = frozenset(
    """eur usd gbp sek nok dkk chf jpy kb mb gb tb ms hr utc name names since after during until nothing everything
    something anything someone everyone nobody somebody people thing things one ones today tomorrow yesterday yes no
    ok okay hi hello hey thanks thank please sure great good nice sorry note todo fixme user assistant system tool
    done step first second third next finally also however maybe perhaps let code api url json html http https sql
    css id pr readme there here what which who how why when where that this these those it its result output error
    warning total mine rest none all both either neither if and but or so well oh wow true false add use run fix
    check make see read write file files new only every each before then now still just don ask tell call email mail
    remind book show give put say old our my dear with from for at in on to by as the a an is are was has
    have""".split()  # noqa: SIM905
)


_LONGEST_ACRONYM = 5


def names(read: ReadText) -> Iterator[Statement]:
    """Runs of capitalised words within a sentence; at its beginning two of them, or one that does something.

    English: of a language that capitalises nouns it finds these too, and of one without capitals nothing.
    """
    for place in read.sentences:
        sentence = read.words(place)
        if _is_heading(sentence):
            continue
        if first := _FIRST.match(sentence):
            yield from _name(first["name"], place[0] + first.start("name"))
        for match in _WITHIN.finditer(sentence):
            yield from _name(match[0], place[0] + match.start())


def _name(said: str, start: int) -> Iterator[Statement]:
    said = re.sub(r"['’]s$", "", said)
    words = said.casefold().split()
    while words and not _can_name(words[0]):
        dropped = said.split(" ", 1)[0]
        said = said[len(dropped) :].lstrip()
        start += len(dropped) + 1
        words = words[1:]
    while words and words[-1].strip("'’&-.").removesuffix("s") in _DAYS:
        said = said.rpartition(" ")[0]
        words = words[:-1]
    is_shouted = said.isupper() and len(said) > _LONGEST_ACRONYM
    if words and len(said) > 1 and not is_shouted:
        yield Statement("name", said.casefold(), "", said, start, start + len(said))


def _can_name(word: str) -> bool:
    bare = re.split("['’]", word.strip("'’&-."))[0]
    return len(bare) > 1 and not (
        bare in load_stop_words("english") or bare.removesuffix("s") in _DAYS or bare in _NO_NAMES
    )


def _is_heading(sentence: str) -> bool:
    """Whether most words are capitalised: a title, or shouted."""
    words = [word for word in sentence.split() if word[:1].isalpha()]
    capitals = sum(word[0].isupper() for word in words)
    return len(words) > 4 and capitals > 0.8 * len(words)
