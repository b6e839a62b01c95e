# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""MkDocs hooks: adds the reference to the site, and leads links to sources to it.

A link to a header leads to its page in the reference. A link to another file or folder of the repository leads to a
generated page that shows it.
"""

import os
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from mkdocs.structure.files import File, InclusionLevel

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/docs"
LANGUAGES = {".cpp": "cpp", ".hpp": "cpp", ".ipp": "cpp", ".cu": "cpp", ".cuh": "cpp", ".py": "python", ".sh": "bash",
             ".cmake": "cmake", ".json": "json", ".yml": "yaml", "CMakeLists.txt": "cmake", "dev": "bash"}
LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")
FENCE = re.compile(r"^\s*(```|~~~)")


def reference_pages():
    """The pages in the reference of headers and of their folders, by path in the repository."""
    pages = {}
    for compound in ElementTree.parse(BUILD / "hocket.tag").getroot().iter("compound"):
        name, path, page = (compound.findtext(key) or "" for key in ("name", "path", "filename"))
        page = page if page.endswith(".html") else page + ".html"
        if compound.get("kind") == "file":
            whole = path + name
        elif compound.get("kind") == "dir":
            whole = path or name
        else:
            continue
        whole = whole[whole.find("hocket/"):] if "hocket/" in whole else whole
        pages[os.path.relpath(ROOT / "include" / whole.rstrip("/"), ROOT)] = "reference/" + page
    return pages


def source_page(path):
    """A page that shows a file or a folder."""
    target = ROOT / path
    header = f"---\nsearch:\n  exclude: true\n---\n\n# {path}\n\n"
    if target.is_dir():
        names = sorted(each.name + "/" * each.is_dir() for each in target.iterdir())
        return header + "\n".join(f"- [{name}]({os.path.relpath(ROOT / path / name, target)})" for name in names) + "\n"
    language = LANGUAGES.get(target.suffix) or LANGUAGES.get(target.name, "text")
    return f"{header}````` {language}\n{target.read_text(encoding='utf-8')}\n`````\n"


def source_uri(path):
    return f"source/{path}/index.md" if (ROOT / path).is_dir() else f"source/{path}.md"


def add_links(markdown, folder, rewrite):
    """Calls `rewrite(path, fragment)` for each relative link outside of code blocks: path in the repository."""
    lines, fence = [], None
    for line in markdown.split("\n"):
        mark = FENCE.match(line)
        if mark and fence in (None, mark[1]):
            fence = None if fence else mark[1]
        if not fence and not re.match(r" {4}(?![-*\d])", line):
            line = LINK.sub(lambda found: replaced(found, folder, rewrite), line)
        lines.append(line)
    return "\n".join(lines)


def replaced(found, folder, rewrite):
    if re.match(r"[a-z]+:|/", found[2]):
        return found[0]
    path = os.path.normpath(os.path.join(folder, found[2]))
    target = rewrite(path, found[3] or "")
    return found[0] if target is None else f"{found[1]}{target}{found[4]}"


def on_files(files, config):
    global pages
    pages = reference_pages()
    for path in sorted((BUILD / "doxygen/reference").rglob("*")):
        if path.is_file():
            uri = path.relative_to(BUILD / "doxygen").as_posix()
            files.append(File(uri, str(BUILD / "doxygen"), config["site_dir"], True,
                              inclusion=InclusionLevel.NOT_IN_NAV))
    # Pages of folders link to further files: all that are reached have to be there before MkDocs reads the first page.
    reached, open_pages = set(), []

    def reach(path, _):
        if (path not in pages and path not in reached and files.get_file_from_path(path) is None
                and (ROOT / path).exists() and not path.startswith("build")):
            reached.add(path)
            open_pages.append(path)

    for file in list(files.documentation_pages()):
        add_links(file.content_string, os.path.dirname(file.src_uri), reach)
    while open_pages:
        path = open_pages.pop()
        content = source_page(path)
        files.append(File.generated(config, source_uri(path), content=content, inclusion=InclusionLevel.NOT_IN_NAV))
        if (ROOT / path).is_dir():
            add_links(content, path, reach)
    return files


def on_page_markdown(markdown, page, config, files):
    here = os.path.dirname(page.file.src_uri)
    folder = here
    if here.startswith("source"):
        if not page.file.src_uri.endswith("/index.md"):
            return markdown  # only folders have links
        folder = os.path.relpath(here, "source")

    def rewrite(path, fragment):
        if files.get_file_from_path(path) is not None and folder == here:
            return None
        if path in pages:
            return os.path.relpath(pages[path], here or ".")
        if files.get_file_from_path(path) is not None:
            return os.path.relpath(path, here) + fragment
        if files.get_file_from_path(source_uri(path)) is not None:
            return os.path.relpath(source_uri(path), here or ".")
        return None

    return add_links(markdown, folder, rewrite)
