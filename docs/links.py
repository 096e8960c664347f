"""A hook of the site: what a page links to outside ``docs`` becomes part of the site.

Pages link to files of the repository by relative paths, which a forge resolves. In the site such a
file stands under its path in the repository, and links are changed to where it is. A link to a
file that is not there is left alone, for the build to refuse.
"""

from __future__ import annotations

import os
import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

_LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#|/)([^)#\s]+)")
_DOCS = "docs/"
ASIDE = InclusionLevel.NOT_IN_NAV


def on_files(files: Files, /, *, config: MkDocsConfig) -> Files:
    """Add the files that pages link to, and those that these link to in turn."""
    root = Path(config.config_file_path).parent
    waiting = [(_DOCS + file.src_uri, file) for file in files.documentation_pages()]
    while waiting:
        path, file = waiting.pop()
        for link in _LINK.findall(file.content_string):
            target = _resolved(path, link)
            if _outside(target) and (root / target).is_file() and target not in files.src_uris:
                source = os.fspath(root / target)
                added = File.generated(config, target, abs_src_path=source, inclusion=ASIDE)
                files.append(added)
                if added.is_documentation_page():
                    waiting.append((target, added))
    return files


def on_page_markdown(markdown: str, /, *, page: Page, files: Files, **_: object) -> str:
    """Let the links of a page lead to where the files stand in the site."""
    here = page.file.src_uri
    path = here if page.file.generated_by else _DOCS + here

    def moved(link: re.Match[str]) -> str:
        target = _resolved(path, link[0])
        in_site = target if _outside(target) else target.removeprefix(_DOCS)
        if in_site not in files.src_uris:
            return link[0]
        return posixpath.relpath(in_site, posixpath.dirname(here) or ".")

    return _LINK.sub(moved, markdown)


def _resolved(path: str, link: str) -> str:
    """Where a link in the file ``path`` of the repository leads, from its root."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), link))


def _outside(target: str) -> bool:
    return not target.startswith((_DOCS, ".."))
