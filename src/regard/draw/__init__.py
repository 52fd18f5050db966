"""Pictures from plain numbers: learning curves and heat maps, as SVG, PNG, or characters in a terminal."""
