"""QUESTIONS: all six, in the order in which they are asked."""

from __future__ import annotations

from depthpde.isolation.question import Question
from depthpde.isolation.questions import cache, future, memory, neighbour, packing, padding

QUESTIONS: dict[str, Question] = {
    each.QUESTION.name: each.QUESTION
    for each in (future, padding, packing, cache, neighbour, memory)
}
