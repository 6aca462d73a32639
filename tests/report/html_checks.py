"""Checks of every page: elements close in order, and addresses stay inside."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from justright.report.elements import Missing, environment

VOID = {"meta", "br", "img", "input"}


class Checker(HTMLParser):
    """Collects addresses and checks that elements are closed in order."""

    def __init__(self):
        super().__init__()
        self.open, self.addresses, self.levels, self.images = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.addresses += [value for name, value in attrs if name in ("src", "href", "action", "data")]
        if re.fullmatch("h[1-6]", tag):
            self.levels.append(int(tag[1]))
        if tag == "img":
            self.images.append(dict(attrs))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.addresses += [value for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def check(html):
    checker = Checker()
    checker.feed(html)
    assert checker.open == []
    return checker


def text_of(html):
    """The visible text, without markup, scripts and styles."""
    without = re.sub(r"<(script|style)>.*?</\1>", "", html, flags=re.S)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", without).replace("\u00a0", " "))


def part(page, name, values):
    """The HTML of one part of a page, as "run" and "comparison" show it."""
    assert not isinstance(values, Missing), values.reason
    return str(getattr(environment().get_template(f"{page}_parts.html").module, name)(**values))


class Seen:
    """An opened page, and everything that went wrong in it."""

    def __init__(self, page):
        self.page, self.problems = page, []
        page.on("console", lambda message: self.problems.append(message.text))
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("request", lambda request: self._asked(request.url))
        page.on("dialog", lambda dialog: (self.problems.append(dialog.message), dialog.dismiss()))

    def _asked(self, url):
        if not url.startswith(("file:", "data:")):
            self.problems.append(url)


def opened(chromium, html, folder, width=1200, **options):
    file = folder / "page.html"
    file.write_text(html, encoding="utf-8")
    for before in chromium.contexts:
        before.close()  # a page that nobody looks at any more still takes its share of the processor
    seen = Seen(chromium.new_context(viewport={"width": width, "height": 800}, **options).new_page())
    seen.page.goto(file.as_uri())
    return seen
