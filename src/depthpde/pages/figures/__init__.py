"""One figure a file: numbers in, an SVG element out."""
