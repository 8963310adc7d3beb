"""Random ListOps trees and their values, compiled: tree number n depends on the seed and n alone.

Every tree owns 2¹⁶ numbers of the counter-based stream, so that no two trees share one and the
same trees come out whatever the number of workers.
"""

from __future__ import annotations

import numpy as np

from depthpde.data.counter import kernel
from depthpde.data.drawing import below, uniform
from depthpde.data.writer import Array

MIN, MAX, MED, SM, CLOSE = 10, 11, 12, 13, 14
_DRAWS = 1 << 16


@kernel
def apply(operator: int, values: Array, count: int) -> int:
    """Return the value of one operator on its first ``count`` arguments; MED sorts them.

    MED of an even count is the mean of the two middle values, cut to a whole number.
    """
    if operator == MED:
        return _median(values, count)
    result = values[0]
    for each in range(1, count):
        value = values[each]
        if operator == SM:
            result += value
        elif operator == MIN:
            result = min(result, value)
        else:
            result = max(result, value)
    return int(result) % 10


@kernel
def _median(values: Array, count: int) -> int:
    for end in range(1, count):
        value = values[end]
        place = end
        while place > 0 and values[place - 1] > value:
            values[place] = values[place - 1]
            place -= 1
        values[place] = value
    return int(values[(count - 1) // 2] + values[count // 2]) // 2


@kernel
def grow(
    key: np.uint64, number: int, law: tuple[float, int, int], longest: int, symbols: Array
) -> tuple[int, int]:
    """Write the symbols of tree ``number``, and return its length and value, or (0, 0) if too long.

    With law = (share, depth, most), a node above that depth is an operator with probability
    ``share`` and 2 … ``most`` arguments, else a digit.
    """
    share, depth, most = law
    draw = np.uint64(number) * np.uint64(_DRAWS)
    missing = np.zeros(depth, np.int64)
    operators = np.zeros(depth, np.int64)
    filled = np.zeros(depth, np.int64)
    values = np.zeros((depth, most), np.int64)
    level = 0
    length = 0
    open_nodes = 0
    while True:
        # The closing brackets of all open nodes are still to come.
        if length + 1 + open_nodes > longest:
            return 0, 0
        operator = level + 1 < depth and uniform(key, draw) <= share
        draw += np.uint64(1)
        if operator:
            operators[level] = MIN + below(key, draw, 4)
            missing[level] = 2 + below(key, draw + np.uint64(1), most - 1)
            draw += np.uint64(2)
            filled[level] = 0
            symbols[length] = operators[level]
            length += 1
            level += 1
            open_nodes += 1
            continue
        value = below(key, draw, 10)
        draw += np.uint64(1)
        symbols[length] = value
        length += 1
        while level > 0:
            parent = level - 1
            values[parent, filled[parent]] = value
            filled[parent] += 1
            if filled[parent] < missing[parent]:
                break
            value = apply(operators[parent], values[parent], filled[parent])
            symbols[length] = CLOSE
            length += 1
            open_nodes -= 1
            level = parent
        if level == 0:
            return length, value


@kernel
def harvest(
    key: np.uint64,
    first: int,
    count: int,
    law: tuple[float, int, int],
    shortest: int,
    longest: int,
    symbols: Array,
    found: Array,
) -> int:
    """Grow ``count`` trees, keep those of the wanted lengths end to end, and return how many.

    Args:
        key: Key of the stream.
        first: Number of the first tree.
        count: Trees to grow.
        law: What ``grow`` takes.
        shortest: Least length kept.
        longest: Greatest length kept.
        symbols: Room for ``count · longest`` symbols.
        found: [count, 2] filled with the length and value of each tree kept.
    """
    kept = 0
    end = 0
    for number in range(first, first + count):
        length, value = grow(key, number, law, longest, symbols[end:])
        if length >= shortest:
            found[kept, 0] = length
            found[kept, 1] = value
            kept += 1
            end += length
    return kept


@kernel
def evaluate(symbols: Array, values: Array, filled: Array) -> int:
    """Return the value of one expression, or −1 − the site where it goes wrong.

    Args:
        symbols: Digits 0 … 9, operators 10 … 13, the closing bracket 14.
        values: [depth, arguments] room for the arguments of the open nodes.
        filled: [depth, 2] room for their operators and argument counts.
    """
    level = 0
    for site in range(len(symbols)):
        symbol = symbols[site]
        if level == 0 and site > 0:
            return -1 - site
        if MIN <= symbol < CLOSE:
            if level == len(filled):
                return -1 - site
            filled[level, 0] = symbol
            filled[level, 1] = 0
            level += 1
            continue
        value = int(symbol)
        if symbol == CLOSE:
            if level == 0 or filled[level - 1, 1] == 0:
                return -1 - site
            level -= 1
            value = apply(filled[level, 0], values[level], filled[level, 1])
        if level == 0:
            if site == len(symbols) - 1:
                return value
            return -1 - (site + 1)
        count = filled[level - 1, 1]
        if count == values.shape[1]:
            return -1 - site
        values[level - 1, count] = value
        filled[level - 1, 1] = count + 1
    return -1 - len(symbols)


@kernel
def tokenise(line: Array, symbols: Array) -> int:
    """Write the symbols of one bracketed expression, and return their count or −1 − the bad byte.

    Parentheses only group and are dropped; symbols are parted by spaces.

    Args:
        line: The bytes of the expression.
        symbols: Room for as many symbols as there are bytes.
    """
    count = 0
    site = 0
    size = len(line)
    while site < size:
        byte = line[site]
        if byte == 32 or byte == 40 or byte == 41:
            site += 1
            continue
        end = site
        while end < size and line[end] != 32 and line[end] != 40 and line[end] != 41:
            end += 1
        symbol = -1
        if end - site == 1 and 48 <= byte <= 57:
            symbol = int(byte) - 48
        elif end - site == 1 and byte == 93:
            symbol = CLOSE
        elif byte == 91:
            symbol = _operator(line[site + 1 : end])
        if symbol < 0:
            return -1 - site
        symbols[count] = symbol
        count += 1
        site = end
    return count


@kernel
def _operator(name: Array) -> int:
    if len(name) == 2 and name[0] == 83 and name[1] == 77:
        return SM
    if len(name) != 3 or name[0] != 77:
        return -1
    if name[1] == 73 and name[2] == 78:
        return MIN
    if name[1] == 65 and name[2] == 88:
        return MAX
    if name[1] == 69 and name[2] == 68:
        return MED
    return -1


@kernel
def literals(symbols: Array, offsets: Array, facts: Array) -> None:
    """Note for each expression its root operator and that operator's value on its direct digits.

    Args:
        symbols: All expressions end to end.
        offsets: Where each starts, and the end.
        facts: [expressions, 2] filled; the value is −1 where no argument is a digit.
    """
    arguments = np.zeros(1 << 10, np.int64)
    for each in range(len(offsets) - 1):
        start = offsets[each]
        facts[each, 0] = symbols[start]
        level = 0
        count = 0
        for site in range(start, offsets[each + 1]):
            symbol = symbols[site]
            if MIN <= symbol < CLOSE:
                level += 1
            elif symbol == CLOSE:
                level -= 1
            elif level == 1 and count < len(arguments):
                arguments[count] = symbol
                count += 1
        facts[each, 1] = apply(symbols[start], arguments, count) if count else -1
