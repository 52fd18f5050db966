"""Pictures: learning curves as SVG and PNG, heat maps for a terminal. Numbers in, text out."""
