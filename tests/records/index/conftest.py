"""Small results folders: two tasks, three variants, six seeds."""

from web.conftest import results, shared_results

__all__ = ["results", "shared_results"]
