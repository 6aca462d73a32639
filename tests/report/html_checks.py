"""What holds of every page: elements close in order, and addresses stay inside."""

from __future__ import annotations

import re
from html.parser import HTMLParser

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
    """What a person reads: no markup, no scripts, no styles."""
    without = re.sub(r"<(script|style)>.*?</\1>", "", html, flags=re.S)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", without).replace("\u00a0", " "))
