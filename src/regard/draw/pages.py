"""Reports as one self-contained HTML page, or a part of a notebook: no script, no request, light or dark."""

from html import escape

from regard.draw.labels import escaped

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
_STYLE = """\
.regard-report { color-scheme: light dark; --ink: #1b1f24; --quiet: #59636e; --paper: #ffffff;
  --rule: #d5dae0; --soft: #f4f6f8; --off: #b4450b; --link: #0b5cad; color: var(--ink);
  background: var(--paper); word-break: keep-all; overflow-wrap: anywhere;
  font: 15px/1.5 system-ui, 'Segoe UI', Roboto, 'Noto Sans KR', 'Noto Sans CJK KR', 'DejaVu Sans',
    sans-serif; }
@media (prefers-color-scheme: dark) {
  .regard-report { --ink: #e6e9ec; --quiet: #a3adb8; --paper: #14171a; --rule: #363c43; --soft: #1d2125;
    --off: #ffa26b; --link: #7db8f5; }
}
body.regard-report { margin: 0; }
.regard-report main { max-width: 1180px; margin: 0 auto; padding: 24px 20px 64px; }
.regard-report h1 { font-size: 26px; line-height: 1.25; margin: 8px 0 4px; }
.regard-report h2 { font-size: 19px; margin: 40px 0 8px; }
.regard-report h3 { font-size: 15px; margin: 24px 0 6px; }
.regard-report p { margin: 8px 0; max-width: 82ch; }
.regard-report ul { margin: 4px 0 12px; padding-left: 22px; max-width: 100ch; }
.regard-report li { margin: 3px 0; }
.regard-report a { color: var(--link); }
.regard-report .note { color: var(--quiet); font-size: 13px; }
.regard-report .wide { overflow-x: auto; margin: 8px 0; }
.regard-report table { border-collapse: collapse; font-variant-numeric: tabular-nums; color: inherit; }
.regard-report th, .regard-report td { padding: 6px 12px 6px 0; text-align: right; vertical-align: top;
  border-bottom: 1px solid var(--rule); background: none; white-space: nowrap; }
.regard-report th { color: var(--quiet); font-weight: 600; font-size: 13px; vertical-align: bottom;
  white-space: normal; overflow-wrap: normal; }
.regard-report th:first-child, .regard-report td:first-child { text-align: left; font-weight: 600; }
.regard-report .words { text-align: left; white-space: normal; min-width: 11em; max-width: 24em; }
.regard-report .name { display: inline-block; max-width: 34ch; overflow: hidden; text-overflow: ellipsis;
  vertical-align: bottom; }
.regard-report small { display: block; color: var(--quiet); font-size: 12px; line-height: 1.3; }
.regard-report .regard-plot { max-width: 100%; height: auto; display: block; margin: 24px 0 8px; }
.regard-report .regard-map { max-width: max(100%, 900px); height: auto; }
.regard-report blockquote { margin: 8px 0; padding: 8px 16px; border-left: 3px solid var(--rule);
  background: var(--soft); }
.regard-report .example { border: 1px solid var(--rule); border-radius: 8px; padding: 10px 16px;
  margin: 10px 0; background: var(--soft); }
.regard-report dl { display: grid; grid-template-columns: minmax(9ch, max-content) 1fr; gap: 4px 16px;
  margin: 0; }
.regard-report dt { color: var(--quiet); font-size: 13px; max-width: 34ch; }
.regard-report dd { margin: 0; }
.regard-report .off { text-decoration: underline dotted var(--off) 2px; text-underline-offset: 3px; }
.regard-report summary { cursor: pointer; color: var(--quiet); font-size: 13px; margin-top: 6px; }
.regard-report code { font: 12.5px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace; }"""


def report_page(body: str, title: str, language: str = "en") -> str:
    """Return a whole page around the markup of a report."""
    return f"""<!DOCTYPE html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="regard">
<title>{escaped(title)}</title>
<style>
{_STYLE}
</style>
</head>
<body class="regard-report">
<main>
{body}
</main>
</body>
</html>
"""


def report_fragment(body: str) -> str:
    """Return the same for a notebook."""
    return f'<div class="regard-report"><style>{_STYLE}</style>{body}</div>'
