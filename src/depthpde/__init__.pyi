"""The public API, typed: editors and type checkers read this list, `__init__.py` loads from it.

A public name is one line. `name = OTHER` publishes a constant under a shorter name.
"""

from depthpde import measures as measures
from depthpde import testing as testing
from depthpde.comparison.compare import compare as compare
from depthpde.comparison.report import ComparisonReport as ComparisonReport
from depthpde.data.batching import Batches as Batches
from depthpde.data.batching import Cursor as Cursor
from depthpde.data.catalog import load as load
from depthpde.data.catalog import prepare as prepare
from depthpde.data.reader import Split as Split
from depthpde.data.task import Task as Task
from depthpde.data.tasks import TASKS
from depthpde.doctor.alarms.detector import Alarm as Alarm
from depthpde.doctor.callbacks import DoctorCallback as DoctorCallback
from depthpde.doctor.callbacks import lightning_doctor as lightning_doctor
from depthpde.doctor.conditions.condition import Condition as Condition
from depthpde.doctor.conditions.condition import Symptom as Symptom
from depthpde.doctor.depth_profile import DepthProfile as DepthProfile
from depthpde.doctor.diagnosis import Diagnosis as Diagnosis
from depthpde.doctor.diagnosis import diagnose as diagnose
from depthpde.doctor.live import AlarmStop as AlarmStop
from depthpde.doctor.live import Doctor as Doctor
from depthpde.doctor.probe import probe as probe
from depthpde.doctor.thresholds import Grade as Grade
from depthpde.doctor.thresholds import Threshold as Threshold
from depthpde.doctor.thresholds import Thresholds as Thresholds
from depthpde.doctor.thresholds import register_condition as register_condition
from depthpde.insertion.causality import check_causality as check_causality
from depthpde.insertion.family import Family as Family
from depthpde.insertion.family import NormOrder as NormOrder
from depthpde.insertion.family import Padding as Padding
from depthpde.insertion.family import into as into
from depthpde.insertion.family import out_of as out_of
from depthpde.insertion.insert import insert as insert
from depthpde.insertion.insert_from import insert_from as insert_from
from depthpde.insertion.insertion import Insertion as Insertion
from depthpde.insertion.layout import FieldLayout as FieldLayout
from depthpde.isolation.answer import Answer as Answer
from depthpde.isolation.answer import Isolation as Isolation
from depthpde.isolation.audit import audit as audit
from depthpde.isolation.report import AuditReport as AuditReport
from depthpde.layers.controls import Blur as Blur
from depthpde.layers.controls import DepthwiseConv as DepthwiseConv
from depthpde.layers.controls import ExponentialAverage as ExponentialAverage
from depthpde.layers.controls import TokenShift as TokenShift
from depthpde.layers.diffusion import AdaptiveDiffusion as AdaptiveDiffusion
from depthpde.layers.diffusion import Diffusion as Diffusion
from depthpde.layers.interaction import Attention as Attention
from depthpde.layers.multiscale import DiffusionScale as DiffusionScale
from depthpde.layers.multiscale import MultiscaleDiffusion as MultiscaleDiffusion
from depthpde.layers.reaction import FeedForward as FeedForward
from depthpde.layers.registry import LayerConfig as LayerConfig
from depthpde.layers.stabilizer import Stabilizer as Stabilizer
from depthpde.layers.stencil import LearnedStencil as LearnedStencil
from depthpde.models.classifier import Classifier as Classifier
from depthpde.models.config import ModelConfig as ModelConfig
from depthpde.models.cost import cost as cost
from depthpde.models.language import LanguageModel as LanguageModel
from depthpde.models.placement import Placement as Placement
from depthpde.models.position import Option as Option
from depthpde.models.position import Position as Position
from depthpde.models.position import Route as Route
from depthpde.models.vision import VisionTransformer as VisionTransformer
from depthpde.operators.boundary import Boundary as Boundary
from depthpde.operators.causal_conv import causal_conv1d as causal_conv1d
from depthpde.operators.causal_conv import causal_conv1d_update as causal_conv1d_update
from depthpde.operators.diffusion.diffusion_2d import diffuse_2d as diffuse_2d
from depthpde.operators.diffusion.dispatch import Method as Method
from depthpde.operators.diffusion.dispatch import diffuse as diffuse
from depthpde.operators.stability import Scheme as Scheme
from depthpde.records.evidence import Evidence as Evidence
from depthpde.records.evidence import gather as gather
from depthpde.records.evidence import over_all as over_all
from depthpde.records.results import Results as Results
from depthpde.records.results import read_results as read_results
from depthpde.records.verdicts import Hypothesis as Hypothesis
from depthpde.records.verdicts import Outcome as Outcome
from depthpde.records.verdicts import Verdict as Verdict
from depthpde.records.verdicts import judge as judge
from depthpde.report.page import write_report as write_report
from depthpde.report.tables import paired_table as paired_table
from depthpde.runs.execute import execute as execute
from depthpde.runs.presets import PRESETS
from depthpde.runs.presets import Preset as Preset
from depthpde.runs.presets import preset as preset
from depthpde.runs.run import RunConfig as RunConfig
from depthpde.runs.settings import build_run as build_run
from depthpde.seeds import generator as generator
from depthpde.simulator.config import SimulatorConfig as SimulatorConfig
from depthpde.simulator.depth import Interpolated as Interpolated
from depthpde.simulator.equation import Equation as Equation
from depthpde.simulator.equation import Projection as Projection
from depthpde.simulator.learned import LanguageSimulator as LanguageSimulator
from depthpde.simulator.learned import Simulator as Simulator
from depthpde.simulator.phase import phase as phase
from depthpde.simulator.simulate import simulate as simulate
from depthpde.simulator.system import System as System
from depthpde.simulator.systems import SYSTEMS
from depthpde.simulator.transcribe import follow as follow
from depthpde.simulator.transcribe import transcribe as transcribe
from depthpde.simulator.work_precision import work_precision as work_precision
from depthpde.solvers.blow_up import BlowUpError as BlowUpError
from depthpde.solvers.events import Event as Event
from depthpde.solvers.events import energy_below as energy_below
from depthpde.solvers.events import merged as merged
from depthpde.solvers.events import norm_above as norm_above
from depthpde.solvers.integrate import integrate as integrate
from depthpde.solvers.term import Term as Term
from depthpde.solvers.trajectory import SolverStatus as SolverStatus
from depthpde.solvers.trajectory import Trajectory as Trajectory
from depthpde.sweeps.clusters.ray_cluster import RayCluster as RayCluster
from depthpde.sweeps.clusters.slurm import Slurm as Slurm
from depthpde.sweeps.executor import Executor as Executor
from depthpde.sweeps.executor import Folders as Folders
from depthpde.sweeps.executor import InProcess as InProcess
from depthpde.sweeps.grid import Plan as Plan
from depthpde.sweeps.grid import Variant as Variant
from depthpde.sweeps.grid import bases as bases
from depthpde.sweeps.grid_file import read_plan as read_plan
from depthpde.sweeps.pool import Pool as Pool
from depthpde.sweeps.sweep import sweep as sweep
from depthpde.training.config import TrainingConfig as TrainingConfig
from depthpde.training.evaluate import evaluate as evaluate
from depthpde.training.history import History as History
from depthpde.training.loop import train as train
from depthpde.training.pretraining import PretrainingConfig as PretrainingConfig
from depthpde.training.pretraining import pretrain as pretrain

__version__: str
presets = PRESETS
systems = SYSTEMS
tasks = TASKS
