"""Figures read back: their shapes, and where their words stand."""

import xml.etree.ElementTree as ET


def shapes(drawn, tag, kind):
    """List the elements of a figure with a tag and a class that contains a word."""
    root = ET.fromstring(drawn)
    found = [each for each in root.iter() if each.tag.endswith("}" + tag)]
    return [each for each in found if kind in (each.get("class") or "")]


def words(drawn):
    """List every text of a figure."""
    return [each.text for each in shapes(drawn, "text", "")]
