"""How notebooks show results: a picture that every viewer shows, and over it what answers the reader."""

import base64
from html import escape

from regard.draw.labels import escaped

_MAX_PAGE_BYTES = 2_000_000
_FRAME_HEIGHT = 760


def mime_bundle(plain: str, picture: str, page: str | None = None) -> dict[str, str]:
    """Return a result in every form a notebook may want: text, SVG, and HTML.

    Over the picture lies the page, in a frame of its own, or else the picture once more as elements, which
    tell their numbers to a pointer. Where a viewer takes those away the picture below is what is left.
    """
    image = base64.b64encode(picture.encode()).decode()
    title = escaped(plain.partition("\n")[0])
    html = f'<img alt="{title}" style="max-width: 100%" src="data:image/svg+xml;base64,{image}">'
    over, room, note = f'<div style="position: absolute; inset: 0">{picture}</div>', "", ""
    if page is not None and len(page) <= _MAX_PAGE_BYTES:
        room = f"; min-height: {_FRAME_HEIGHT}px"
        over = (
            f'<iframe sandbox="allow-scripts" title="{title}" srcdoc="{escape(page, quote=True)}" '
            f'style="position: absolute; inset: 0; width: 100%; height: {_FRAME_HEIGHT}px; border: 0; '
            'background: Canvas"></iframe>'
        )
    elif page is not None:
        note = f"<p>The page has {len(page) / 1e6:.1f} MB; write it to a file with save('trace.html').</p>"
    return {
        "text/plain": plain,
        "image/svg+xml": picture,
        "text/html": f'<div style="position: relative{room}">{html}{over}</div>{note}',
    }
