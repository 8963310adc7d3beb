"""One measure a file: pure functions of tensors, padding left out.

>>> u = torch.randn(2, 10, 16)
>>> dp.measures.rank.effective_rank(u).shape
torch.Size([2])
"""

from depthpde.measures import attention as attention
from depthpde.measures import coupling as coupling
from depthpde.measures import drift as drift
from depthpde.measures import energy as energy
from depthpde.measures import estimators as estimators
from depthpde.measures import gradient as gradient
from depthpde.measures import information as information
from depthpde.measures import lyapunov as lyapunov
from depthpde.measures import rank as rank
from depthpde.measures import sliced as sliced
from depthpde.measures import spectrum as spectrum
