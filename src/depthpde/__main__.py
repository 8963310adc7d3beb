"""``python -m depthpde``: the command where its script is not on the path."""

import sys

from depthpde.cli.main import main

sys.exit(main())
