"""Word alignments as sets of links, and the Pharaoh format (`0-0 1-2`) that the field exchanges them in."""

from collections.abc import Iterable

Link = tuple[int, int]  # (source word, target word), both counted from 0


def to_pharaoh(links: Iterable[Link]) -> str:
    """Return the links in order as `i-j i-j ...`; no links give an empty string."""
    return " ".join(f"{source}-{target}" for source, target in sorted(links))


def from_pharaoh(line: str) -> frozenset[Link]:
    """Return the links of one line written `i-j i-j ...`."""
    links = set()
    for field in line.split():
        source, dash, target = field.partition("-")
        if not (dash and source.isdecimal() and target.isdecimal()):
            raise ValueError(f"{field!r} is not a link; write source-target counted from 0, such as 3-4")
        links.add((int(source), int(target)))
    return frozenset(links)
