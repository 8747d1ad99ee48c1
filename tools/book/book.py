#!/usr/bin/env python3
"""Builds the documentation as one site and one PDF: ./dev book.

    book.py OUT [--rung PROGRAM] [--pdf]   writes OUT/index.html and all that it links to; --pdf: OUT/rung-book.pdf too
    book.py --check                        looks for links to nowhere, pages out of the contents, words out of the glossary

The contents are docs/book/contents.txt: a part a line without indentation, below it the pages of the part. A page is
Markdown; its figures, tables and listings were filled in by tools/pages before. Nothing of the site is fetched from
elsewhere: it works from a folder, without a network. Needs python3-markdown; the PDF needs weasyprint.
"""
import argparse
import html
import json
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HERE = os.path.dirname(os.path.abspath(__file__))
CONTENTS = "docs/book/contents.txt"
GLOSSARY = "docs/glossary.md"
ANSWERS = "docs/book/answers.txt"
QUESTIONS = "\n## Ten questions\n"
TERM = re.compile(r"\*\*([^*]+)\*\*(?: \([^)]*\))?:? ([^*]+)")
EVERYDAY = {"cycle", "row", "line", "result", "request", "split", "pass", "set", "event", "issues", "fast", "strict", "accurate", "u", "16.7", "thread",
            "kernel", "grid", "slice", "page", "box", "ladder", "rank", "family", "peer", "median", "noise", "guard", "drift", "race", "atomic", "ready", "another was taken"}
# Sections of every chapter that may stand without a picture; another one says why in a comment, <!-- no picture: ... -->.
PLAIN = {"Try", "Where to read on", "Ten questions", "What went wrong on the way"}
# Words that chapters stress. Any other word of one to three in italics is a term, and a term is in the glossary.
STRESSED = set("""not must overwrite stores every slower price neighbouring here before after between inside lower order moves truncates less can all
    heat you another known counts second optimises above name addresses their its rounds""".split()) | {
    "what was paid", "their turn", "at dispatch", "in which order", "where loads stand", "its own", "under way", '"equal."'}
MARKER = re.compile(r"<!--(?:=.*?|/|\s*/?fill.*?|\s*count\s*)-->")
LINK = re.compile(r"(!?\[[^\]]*\]\()([^)\s]+)(\))")
HEADING = re.compile(r"^#{1,6} ", re.M)


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def contents():
    """Returns the parts of the contents: [(part, [page path, ...]), ...]."""
    parts = []
    for line in read(CONTENTS).splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if line[0] != " ":
            parts.append((line.strip(), []))
            continue
        name = line.strip()
        parts[-1][1].extend(ladder_pages(name[1:]) if name[0] == "*" else [name])
    return parts


def ladder_pages(kinds):
    """Returns the pages of the rungs whose names begin with one of these letters, in the order of the catalog."""
    sys.path.insert(0, os.path.join(ROOT, "tools/pages"))
    from records import Records
    return [f"docs/ladder/{name}.md" for name in Records(ROOT).order if name[0] in kinds]


def title_of(text, path):
    found = re.search(r"^# (.+)$", text, re.M)
    return number_of(path) + re.sub(r"[`*]", "", found.group(1)) if found else os.path.basename(path)


def number_of(path):
    """Returns a chapter's number, as other chapters name it: docs/book/07-vectors.md is `7. `; other pages have none."""
    found = re.match(r"docs/book/(\d\d)-", path)
    return f"{int(found.group(1))}. " if found else ""


def out_name(path):
    """Says where a page lies on the site: docs/book/01-machine.md becomes book/01-machine.html, docs/numerics.md numerics.html."""
    return re.sub(r"^docs/", "", path)[:-3] + ".html" if path.endswith(".md") else path


def word_id(term):
    return "w-" + re.sub(r"\W+", "-", term.lower()).strip("-")


def terms():
    """Reads the glossary: each term as a text may use it, the place of its entry, and what it says. Everyday words are left out."""
    found = {}
    for entry, said in TERM.findall(read(GLOSSARY)):
        for term in entry.split(", "):
            if term.lower() not in EVERYDAY:
                found[term.lower()] = (word_id(entry), re.sub(r"\s+", " ", re.sub(r"[`*]|\]\([^)]*\)|\[", "", said)).strip(" .,:"))
    return found


def plain(text):
    """Returns the words of a page as they are read, without marks and markers, one space between words."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", MARKER.sub("", text))
    return re.sub(r"\s+", " ", re.sub(r"[*`]", "", text)).strip()


def answers():
    """Returns the pieces of each chapter's text that answer its questions, by the chapter's number."""
    found = {}
    for line in read(ANSWERS).splitlines():
        if line.startswith("  "):
            found[number].append(line.strip())
        elif line and line[0] != "#":
            number = int(line)
            found[number] = []
    return found


# ---- pages that are made, not written ----

def api_page():
    """Makes the manual of the C interface: the comments and declarations of rung.h, as they stand there."""
    lines = ["# The C interface", "", "What `include/rung.h` says, in its order. The header's comments are the manual."]
    for name in ("rung.h", "rung_multi.h"):
        lines += ["", f"## {name}", "", "```c", read("include/" + name).rstrip(), "```"]
    return "\n".join(lines) + "\n"


def commands_page(rung):
    """Makes the manual of the command: what `rung help VERB` prints."""
    def said(*words):
        return subprocess.run([rung, *words], capture_output=True, text=True, check=True).stdout.rstrip()
    overview = said("help")
    lines = ["# The command", "", "What `rung help` prints, and `rung help VERB` for each verb.", "", "```", overview, "```"]
    for verb in re.findall(r"^  ([a-z]+) ", overview, re.M):
        lines += ["", f"## rung {verb}", "", "```", said("help", verb), "```"]
    return "\n".join(lines) + "\n"


# ---- from Markdown to a page ----

class Site:
    def __init__(self, out, rung):
        self.out = out
        self.parts = contents()
        self.made = {"docs/api.md": api_page()}
        if rung:
            self.made["docs/commands.md"] = commands_page(rung)
        self.parts.append(("Reference", list(self.made)))
        self.order = [page for _, pages in self.parts for page in pages]
        self.texts = {page: self.made.get(page) or read(page) for page in self.order}
        self.titles = {page: title_of(text, page) for page, text in self.texts.items()}
        self.faults = []
        self.index = []
        self.terms = terms()

    def target(self, page, link):
        """Says where a link of a page leads on the site. Files of the tree that are no page are named, not linked."""
        if re.match(r"[a-z]+:", link) or link.startswith("#"):
            return link
        path, _, anchor = link.partition("#")
        full = os.path.normpath(os.path.join(os.path.dirname(page), path))
        if full in self.texts:
            to = os.path.relpath(out_name(full), os.path.dirname(out_name(page)) or ".")
            return to + ("#" + anchor if anchor else "")
        if not os.path.exists(os.path.join(ROOT, full)):
            self.faults.append(f"{page} links to {link}, which is not there")
            return None
        if full.endswith((".svg", ".png")):
            self.copy(full)
            return os.path.relpath(re.sub(r"^docs/", "", full), os.path.dirname(out_name(page)) or ".")
        return None

    def copy(self, path):
        to = os.path.join(self.out, re.sub(r"^docs/", "", path))
        os.makedirs(os.path.dirname(to), exist_ok=True)
        shutil.copyfile(os.path.join(ROOT, path), to)

    def links(self, page, text):
        def change(match):
            to = self.target(page, match.group(2))
            if to is None:
                return match.group(1).strip("![](").join(["`", "`"]).replace("``", "`") or match.group(2)
            return match.group(1) + to + match.group(3)
        parts = re.split(r"(```.*?```)", text, flags=re.S)
        return "".join(part if part.startswith("```") else LINK.sub(change, part) for part in parts)

    def body(self, page):
        import markdown
        text = MARKER.sub("", self.texts[page])
        text = self.links(page, text)
        extensions = ["tables", "fenced_code", "toc", "attr_list", "md_in_html"]
        try:
            import pygments  # noqa: F401
            extensions.append("codehilite")
        except ImportError:
            pass
        maker = markdown.Markdown(extensions=extensions, extension_configs={
            "toc": {"slugify": slug}, **({"codehilite": {"guess_lang": False}} if "codehilite" in extensions else {})})
        made = re.sub(r"(<h1[^>]*>)", r"\g<1>" + number_of(page), maker.convert(text), count=1)
        if page == GLOSSARY:
            made = re.sub(r"<strong>([^<]+)</strong>", lambda m: f'<strong id="{word_id(m.group(1))}">{m.group(1)}</strong>', made)
        elif number_of(page):
            made = self.words_of(page, made)
        if number_of(page):
            made = self.answered(page, made)
        made = re.sub(r'<img([^>]* src="([^"]+)")', lambda m: self.picture(page, m), made)
        made = re.sub(r"<p>(<img[^>]*>)</p>\n<p><em>(.*?)</em></p>", r"<figure>\1<figcaption>\2</figcaption></figure>", made, flags=re.S)
        made = re.sub(r"<table>", '<div class="wide"><table>', made).replace("</table>", "</table></div>")
        self.note(page, made)
        return made

    def picture(self, page, match):
        """Marks a drawing that has colours of its own for dark pages; the style turns the colours of all others."""
        path = os.path.join(self.out, os.path.dirname(out_name(page)), html.unescape(match.group(2)))
        with open(path, encoding="utf-8", errors="replace") as file:
            own = "prefers-color-scheme" in file.read()
        return '<img class="own"' + match.group(1) if own else match.group(0)

    def words_of(self, page, made):
        """Makes the first use of each term in a chapter lead to its entry in the glossary, and show it."""
        to, left = os.path.relpath(out_name(GLOSSARY), os.path.dirname(out_name(page))), dict(self.terms)
        pattern = re.compile(r"\b(" + "|".join(re.escape(x) for x in sorted(left, key=len, reverse=True)) + r")(s?)\b", re.I)

        def link(match):
            found = left.pop(match.group(1).lower(), None)
            if not found:
                return match.group(0)
            return f'<a class="word" href="{to}#{found[0]}" title="{html.escape(found[1])}">{match.group(0)}</a>'

        def paragraph(match):
            parts, inside = re.split(r"(<[^>]+>)", match.group(0)), 0
            for i, part in enumerate(parts):
                if part.startswith("<"):
                    inside += len(re.findall(r"^<(?:a|code)\b", part)) - len(re.findall(r"^</(?:a|code)>", part))
                elif not inside:
                    parts[i] = pattern.sub(link, part)
            return "".join(parts)

        return re.sub(r"<p>.*?</p>", paragraph, made, flags=re.S)

    def answered(self, page, made):
        """Makes each of a chapter's questions lead to the place that answers it."""
        text, questions = made.split('<h2 id="ten-questions">', 1)
        chapter = int(number_of(page)[:-2])
        blocks = re.split(r"(<(?:p|li|td|pre|h[1-3])\b.*?</(?:p|li|td|pre|h[1-3])>)", text, flags=re.S)
        read_as = [re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", "", block))).strip() for block in blocks]
        for nth, piece in enumerate(answers().get(chapter, []), 1):
            at = next((i for i, block in enumerate(read_as) if i % 2 and piece in block), None)
            if at is None:
                self.faults.append(f"{page}: the answer to question {nth} is in none of its paragraphs: {piece}")
                continue
            opening = blocks[at].index(">") + 1  # inside, so that a heading above still knows what follows it
            blocks[at] = f'{blocks[at][:opening]}<a id="answer-{chapter}-{nth}"></a>{blocks[at][opening:]}'
        links = iter(range(1, 11))
        questions = re.sub(r"</li>", lambda _: f' <a class="answer" href="#answer-{chapter}-{next(links)}">where it says so</a></li>', questions, count=10)
        return "".join(blocks) + '<h2 id="ten-questions">' + questions

    def note(self, page, made):
        """Returns what the search knows of a page: its sections, each with its text."""
        pieces = re.split(r'<h[1-3] id="([^"]+)">(.*?)</h[1-3]>', made)
        for i in range(1, len(pieces), 3):
            text = re.sub(r"<[^>]+>", " ", pieces[i + 2])
            self.index.append({"u": out_name(page) + "#" + pieces[i], "t": html.unescape(re.sub(r"<[^>]+>", "", pieces[i + 1])),
                               "p": self.titles[page], "x": html.unescape(re.sub(r"\s+", " ", text)).strip()})

    def side(self, page):
        up = os.path.relpath(".", os.path.dirname(out_name(page)) or ".")
        rows = []
        for part, pages in self.parts:
            opened = " open" if page in pages or part == self.parts[0][0] else ""
            rows.append(f"<details{opened}><summary>{html.escape(part)}</summary><ol>")
            for other in pages:
                here = ' aria-current="page"' if other == page else ""
                rows.append(f'<li><a href="{up}/{out_name(other)}"{here}>{html.escape(self.titles[other])}</a></li>')
            rows.append("</ol></details>")
        return "\n".join(rows)

    def around(self, page):
        at = self.order.index(page)
        row = []
        for step, word in ((-1, "Previous"), (1, "Next")):
            if 0 <= at + step < len(self.order):
                other = self.order[at + step]
                to = os.path.relpath(out_name(other), os.path.dirname(out_name(page)) or ".")
                row.append(f'<a class="{word.lower()}" href="{to}"><small>{word}</small> {html.escape(self.titles[other])}</a>')
        return "".join(row)

    def write_page(self, page, template):
        up = os.path.relpath(".", os.path.dirname(out_name(page)) or ".")
        text = template
        for name, value in (("title", html.escape(self.titles[page])), ("up", up), ("side", self.side(page)),
                            ("around", self.around(page)), ("body", self.body(page))):
            text = text.replace("{{" + name + "}}", value)
        to = os.path.join(self.out, out_name(page))
        os.makedirs(os.path.dirname(to) or ".", exist_ok=True)
        with open(to, "w", encoding="utf-8") as file:
            file.write(text)

    def write(self):
        template = read(os.path.relpath(os.path.join(HERE, "page.html"), ROOT))
        for page in self.order:
            self.write_page(page, template)
        for name in ("book.css", "book.js"):
            shutil.copyfile(os.path.join(HERE, name), os.path.join(self.out, name))
        with open(os.path.join(self.out, "search.js"), "w", encoding="utf-8") as file:
            file.write("window.bookIndex = " + json.dumps(self.index, ensure_ascii=False) + ";\n")
        first = out_name(self.order[0])
        with open(os.path.join(self.out, "index.html"), "w", encoding="utf-8") as file:
            file.write(f'<!doctype html><meta charset="utf-8"><title>Rung</title><meta http-equiv="refresh" content="0; url={first}">'
                       f'<a href="{first}">Rung: the book</a>\n')

    def check_anchors(self):
        """Checks that every link of the site leads to a file that is there and to a heading that it has."""
        names = {}
        for page in self.order:
            text = open(os.path.join(self.out, out_name(page)), encoding="utf-8").read()
            names[out_name(page)] = (set(re.findall(r'id="([^"]+)"', text)), re.findall(r'href="([^"]+)"', text))
        for name, (_, links) in names.items():
            for link in links:
                if re.match(r"[a-z]+:", link):
                    continue
                path, _, anchor = html.unescape(link).partition("#")
                full = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
                if not os.path.exists(os.path.join(self.out, full)):
                    self.faults.append(f"{name} links to {link}, which is not there")
                elif anchor and full in names and anchor not in names[full][0]:
                    self.faults.append(f"{name} links to {link}: {full} has no such heading")

    @staticmethod
    def place(page):
        return "at-" + os.path.basename(page)[:-3]

    def inside(self, folder, link, chapters):
        """Returns a link of the PDF: it leads to a chapter in it, to the answer of a question, or nowhere."""
        if link.startswith("#answer-"):
            return f'href="{link}"'
        full = os.path.normpath(os.path.join(folder, link.partition("#")[0]))
        return next((f'href="#{self.place(page)}"' for page in chapters if out_name(page) == full), "")

    def write_pdf(self):
        """Joins the book's chapters, without the reference, one after the other."""
        chapters = [page for page in self.order if page.startswith("docs/book/") or page == "docs/glossary.md"]
        bodies = []
        for page in chapters:
            text = self.body(page)
            folder = os.path.dirname(out_name(page))
            text = re.sub(r'src="([^":]+)"', lambda m: f'src="{os.path.normpath(os.path.join(folder, m.group(1)))}"', text)
            text = re.sub(r'href="([^"]*)"', lambda m: self.inside(folder, m.group(1), chapters), text)
            bodies.append(f'<section class="chapter" id="{self.place(page)}">{text}</section>')
        whole = (f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Rung: the book</title>'
                 f'<link rel="stylesheet" href="book.css"><body class="print"><main>{"".join(bodies)}</main></body></html>')
        at = os.path.join(self.out, "print.html")
        with open(at, "w", encoding="utf-8") as file:
            file.write(whole)
        subprocess.run(["weasyprint", "-q", at, os.path.join(self.out, "rung-book.pdf")], check=True)
        os.remove(at)


def slug(text, separator):
    """Returns a heading's name in links, as hosts of repositories make it: lower case, hyphens, nothing else."""
    return re.sub(r"\s", separator, re.sub(r"[^\w\s-]", "", text.lower()).strip())


def check():
    """Checks what can be checked without python3-markdown."""
    faults = []
    listed = {page for _, pages in contents() for page in pages}
    for page in sorted(listed):
        if not os.path.exists(os.path.join(ROOT, page)):
            faults.append(f"{CONTENTS} lists {page}, which is not there")
    written = [f"docs/{folder}{name}" for folder in ("", "book/", "ladder/") for name in sorted(os.listdir(os.path.join(ROOT, "docs", folder)))
               if name.endswith(".md")]
    faults += [f"{page} is not in {CONTENTS}" for page in written if page not in listed]
    for page in sorted(p for p in listed if p.startswith("docs/book/") and re.search(r"/\d\d-", p)):
        faults += chapter_faults(page, read(page))
    return faults


def chapter_faults(page, text):
    """Checks that every chapter has questions at its end, a command to try, and pictures."""
    faults = []
    if QUESTIONS not in text:
        faults.append(f"{page} does not end with its ten questions")
    else:
        asked = re.findall(r"^\d+\. ", text.split(QUESTIONS, 1)[1], re.M)
        if len(asked) != 10:
            faults.append(f"{page} asks {len(asked)} questions instead of ten")
        given = answers().get(int(number_of(page)[:-2]), [])
        if len(given) != 10:
            faults.append(f"{ANSWERS} has {len(given)} answers for {page} instead of ten")
        said = plain(text.split(QUESTIONS, 1)[0])
        faults += [f"{page} no longer says what answers question {i}: {piece}" for i, piece in enumerate(given, 1) if plain(piece) not in said]
    for part, words in (("\n## Try\n", "something to try"), ("\n## Where to read on\n", "a word on where to read on"), ("**The question.**", "its question"),
                        ("**Guess before you read on.**", "a guess"), ("\n## What went wrong on the way\n", "what went wrong on the way"),
                        ("rung learn", "an exercise of rung learn"), ("```sh\n", "a command that a reader can type")):
        if part not in text:
            faults.append(f"{page} lacks {words}")
    if not any(sign in text for sign in ("```\n$ ", "<!-- fill results ", "<!-- fill index ")) and "<!-- no output: " not in text:
        faults.append(f"{page} shows nothing of what a command prints, and no reason for that")
    return faults + picture_faults(page, text) + term_faults(page, text)


def picture_faults(page, text):
    """Checks that every section has a picture, or a reason for none, and each picture a caption below it."""
    faults = []
    for section in re.split(r"^## ", text, flags=re.M)[1:]:
        name = section.split("\n", 1)[0]
        if name not in PLAIN and "![" not in section and "<!-- no picture: " not in section:
            faults.append(f"{page}: the section '{name}' has no picture and no reason for that")
    lines = text.split("\n")
    for i, line in enumerate(lines):
        if "![" in line and not (line.startswith("![") and lines[i - 1:i] == [""] and lines[i + 1:i + 2] == [""] and lines[i + 2][:1] == "*"):
            faults.append(f"{page}, line {i + 1}: a picture stands alone, with a caption in italics below it")
    return faults


def term_faults(page, text):
    """Finds words in italics that are neither in the glossary nor merely stressed."""
    entries = re.findall(r"\*\*?([^*\n]+)\*\*?(?: \((?:also: )?([^)]*)\))?", read(GLOSSARY))
    known = {word.strip().lower() for pair in entries for words in pair for word in words.split(",")}
    text = re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.S)
    paragraphs = [x for x in text.split("\n") if not re.fullmatch(r"\*[^*].*\*?", x) or re.match(r"\*[^*]{1,40}\*[^*]", x)]
    found = re.findall(r"(?<![\w*])\*([^*\n]{2,40})\*(?![\w*])", "\n".join(paragraphs))
    words = {w.lower() for w in found if len(w.split()) <= 3 and w[-1] not in ".:?,"}
    return [f"{page}: '{w}' in italics is in neither {GLOSSARY} nor the list of stressed words"
            for w in sorted(words) if w not in STRESSED and w not in known and w.rstrip("s") not in known]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", nargs="?")
    parser.add_argument("--rung", help="the rung command, for the page of its verbs")
    parser.add_argument("--pdf", action="store_true")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    if args.check:
        faults = check()
    else:
        if not args.out:
            parser.error("the folder to write is missing")
        shutil.rmtree(args.out, ignore_errors=True)
        os.makedirs(args.out)
        site = Site(args.out, args.rung)
        site.write()
        site.check_anchors()
        if args.pdf:
            site.write_pdf()
        faults = site.faults
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
