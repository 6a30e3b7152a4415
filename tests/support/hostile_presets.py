"""Presets that want code run, by family: each would make the file CANARY, were it built as it is written."""

from collections.abc import Iterator
from dataclasses import dataclass

CANARY, FOLDER = "@CANARY@", "@FOLDER@"
_TOUCH = f"touch {CANARY}"
_MODULE = f'open("{CANARY}", "w").close()\n\n\nclass Evil:\n    pass\n'
_GLOBAL = "# @package _global_\n"
_EVIL = ("experiment=evil",)


@dataclass(frozen=True)
class HostilePreset:
    """A folder that somebody hands over, and the command that uses it."""

    family: str
    files: dict[str, str]
    """Path below the folder, of YAML that is searched or of a module on Python's path -> text."""
    arguments: tuple[str, ...]
    names: str
    """What the refusal names: the key, or its last part."""


def hostile_presets() -> Iterator[HostilePreset]:
    """All of them."""
    for target, settings in _ALIASES:
        yield _decay("an alias of what a module imports", target, settings)
    for target, settings in _FOREIGN:
        yield _decay("a class or function of another package", target, settings)
    for target, settings in _NO_COMPONENTS:
        yield _decay("what is ours and no component", target, settings)
    for node, names in _NESTED:
        yield _experiment("a part within a part", node, names)
    for node in _SPECIAL:
        yield _decay_text("Hydra's own words in a component", node, "decay._")
    for node in _INTERPOLATED:
        yield _experiment("a target by interpolation", node, "._target_: ")
    for node in _RESOLVED:
        yield _experiment("a target by a resolver", node, "decay")
    for node, names in _HYDRAS:
        yield _experiment("Hydra's own settings", f"hydra:\n{node}", names, ("-m", "decay=none,weibull"))
    for node, names, more in _TRUSTING:
        yield _experiment("trust that a YAML gives itself", node, names, more, {"evil.py": _MODULE})
    for target in _MODULES:
        yield _decay("a module that runs when it is imported", target, "", {"evil.py": _MODULE})
    for place in _PLACES:
        arguments = (f"hydra.searchpath=[{place}]", "decay=evil")
        yield HostilePreset("a place to search that is imported", {"evil.py": _MODULE}, arguments, "hydra.searchpath")
    for text in _TAGS:
        yield HostilePreset("a tag of YAML", {"decay/evil.yaml": text}, ("decay=evil",), "evil.yaml")
    for target in _NO_PATHS:
        yield _decay_text("a target that is no path", f"_target_: {target}\ncommand: {_TOUCH}\n", "decay")
    for header, names in _HEADERS:
        text = f"# @package {header}\n_target_: os.system\ncommand: {_TOUCH}\n"
        yield _decay_text("a header that puts it elsewhere", text, names)
    for params, names in _SWEPT_VALUES:
        swept = "".join(f"      {line}\n" for line in params)
        text = f"{_GLOBAL}hydra:\n  sweeper:\n    params:\n{swept}      decay: none,weibull\n"
        yield HostilePreset("values of a sweep", {"sweep/evil.yaml": text}, ("-m", "sweep=evil"), names)
    for defaults in _OUTSIDE:
        text = f"defaults:\n  - {defaults}\n"
        yield _experiment("a choice outside of its folder", text, "defaults: ", (), {"../outside.yaml": _CALL})
    for uri in _PLACES_OF_MLFLOW:
        yield _experiment("a place to write to", f"tracking:\n  uri: {uri}\n", "tracking.uri", _LOGGING_TO_MLFLOW)


def _decay(family: str, target: str, settings: str, files: dict[str, str] | None = None) -> HostilePreset:
    return _decay_text(family, f"_target_: {target}\n{settings}", "decay._target_", files)


def _decay_text(family: str, text: str, names: str, files: dict[str, str] | None = None) -> HostilePreset:
    return HostilePreset(family, {"decay/evil.yaml": text, **(files or {})}, ("decay=evil",), names)


def _experiment(
    family: str, text: str, names: str, more: tuple[str, ...] = (), files: dict[str, str] | None = None
) -> HostilePreset:
    return HostilePreset(family, {"experiment/evil.yaml": _GLOBAL + text, **(files or {})}, (*_EVIL, *more), names)


_PATH = f"path: {CANARY}\n"
_ALIASES = [
    ("lcm.retrieval.embedder.export.os.system", f"command: {_TOUCH}\n"),
    ("lcm.retrieval.embedder.export.subprocess.run", f"args: [touch, {CANARY}]\n"),
    ("lcm.retrieval.embedder.export.os.mkdir", _PATH),
    ("eval.run.subprocess.check_call", f"args: [touch, {CANARY}]\n"),
    ("eval.external.process.subprocess.Popen", f"args: [touch, {CANARY}]\n"),
    ("eval.tracking.mlflow_log.os.system", f"command: {_TOUCH}\n"),
    ("lcm.files.os.makedirs", f"name: {CANARY}\n"),
    ("lcm.files.os.mkdir", _PATH),
    ("eval.executor.os.system", f"command: {_TOUCH}\n"),
    ("lcm.retrieval.embedder.export.shutil.copyfile", f"src: /etc/hostname\ndst: {CANARY}\n"),
    ("eval.executor.importlib.import_module", "name: evil\n"),
    ("lcm.retrieval.embedder.export.FileLock", f"lock_file: {CANARY}\n"),
]
_FOREIGN = [
    ("os.system", f"command: {_TOUCH}\n"),
    ("subprocess.run", f"args: [touch, {CANARY}]\n"),
    ("subprocess.getoutput", f"cmd: {_TOUCH}\n"),
    ("builtins.open", f"file: {CANARY}\nmode: w\n"),
    ("shutil.copyfile", f"src: /etc/hostname\ndst: {CANARY}\n"),
    ("numpy.save", f"file: {CANARY}\narr: [1]\n"),
    ("logging.FileHandler", f"filename: {CANARY}\n"),
    ("sqlite3.connect", f"database: {CANARY}\n"),
]
_NO_COMPONENTS = [
    ("lcm.retrieval.embedder.export._run_apart", f"program: evil\nsource: x\ntarget: {CANARY}\nprecision: fp32\n"),
    ("eval.run.write_whole", f"path: {CANARY}\ntext: x\n"),
    ("lcm.files.written_whole", _PATH),
    ("lcm.store.store.Store", _PATH),
    ("pipelines.config.command_line.new_folder", f"wanted: {CANARY}\n"),
    ("eval.tracking.place._make_whole", f"local: {CANARY}\n"),
]
_CALL = f"{{_target_: os.system, command: '{_TOUCH}'}}"
_ALIAS = f"{{_target_: lcm.retrieval.embedder.export.os.system, command: '{_TOUCH}'}}"
_NESTED = [
    (f"ranking:\n  stages:\n    evil: {_CALL}\n  order: null\n", "ranking.stages.evil._target_"),
    (f"ranking:\n  stages:\n    evil: {_ALIAS}\n  order: null\n", "ranking.stages.evil._target_"),
    (f"measures:\n  evil: {_CALL}\n", "measures.evil._target_"),
    (f"measures:\n  evil: {_ALIAS}\n", "measures.evil._target_"),
    (f"arms:\n  evil: {_CALL}\n", "arms.evil._target_"),
    (f"distractors:\n  evil: {_ALIAS}\n", "distractors.evil._target_"),
    (f"assembly:\n  evil: {_CALL}\n", "assembly.evil._target_"),
    (f"source:\n  evil: {{more: {_ALIAS}}}\n", "source.evil.more._target_"),
    (f"replay:\n  evil: {_ALIAS}\n", "replay.evil._target_"),
    (f"tracking: {{_target_: eval.tracking.tracking.NoTracking, uri: [[{_ALIAS}]]}}\n", "tracking.uri"),
]
_SPECIAL = [
    f"_target_: os.system\n_args_: ['{_TOUCH}']\n",
    f"_target_: lcm.retrieval.embedder.export.os.system\n_args_: ['{_TOUCH}']\n",
    f"_target_: lcm.retrieval.decay.NoDecay\n_args_: [{_CALL}]\n",
    f"_target_: lcm.retrieval.decay.NoDecay\n_partial_: {_ALIAS}\n",
    f"_target_: lcm.retrieval.decay.NoDecay\n_recursive_: {_ALIAS}\n",
    f"_target_: functools.partial\n_args_: [{_CALL}]\n",
    f"_target_: builtins.map\n_args_: [{{_target_: os.system, _partial_: true}}, ['{_TOUCH}']]\n",
]
_INTERPOLATED = [
    f"evil: os.system\ndecay:\n  _target_: ${{evil}}\n  command: {_TOUCH}\n",
    f"evil: os\ndecay:\n  _target_: ${{evil}}.system\n  command: {_TOUCH}\n",
    f"decay:\n  _target_: ${{.name}}\n  name: os.system\n  command: {_TOUCH}\n",
    f"evil: {_CALL}\ndecay: ${{evil}}\n",
    f"evil: {_ALIAS}\ndecay: ${{evil}}\n",
    f"evil: [{_CALL}]\ndecay: ${{evil.0}}\n",
    f"a: evil\nevil: {_CALL}\ndecay: ${{${{a}}}}\n",
]
_RESOLVED = [
    f"decay: ${{oc.create:{{_target_:os.system,command:'{_TOUCH}'}}}}\n",
    f"decay: ${{oc.decode:'{{_target_:os.system,command:{CANARY}}}'}}\n",
    f"evil: {_CALL}\ndecay: ${{oc.select:evil}}\n",
    f"evil: {{one: {_CALL}}}\ndecay: ${{oc.dict.values:evil}}\n",
    f"evil: {_CALL}\ndecay: ${{oc.deprecated:evil}}\n",
    f"decay:\n  _target_: ${{oc.env:LCM_NONE,os.system}}\n  command: {_TOUCH}\n",
    f"decay:\n  _target_: ${{oc.env:NONE,os.system}}\n  command: {_TOUCH}\n",
    f"resolver: oc.create\ndecay: ${{${{resolver}}:{{_target_:os.system,command:'{_TOUCH}'}}}}\n",
]
_LOGGING = "    version: 1\n    disable_existing_loggers: false\n    root: null\n    handlers:\n      evil: "
_HYDRAS = [
    (f"  callbacks:\n    evil: {_CALL}\n", "hydra.callbacks"),
    (f"  callbacks:\n    evil: {_ALIAS}\n", "hydra.callbacks"),
    (f"  launcher:\n    evil: {_CALL}\n", "hydra.launcher"),
    (f"  launcher:\n    _target_: os.system\n    command: {_TOUCH}\n", "hydra.launcher"),
    (f"  job_logging:\n{_LOGGING}{{'()': os.system, command: '{_TOUCH}'}}\n", "hydra.job_logging"),
    (f"  job_logging:\n{_LOGGING}{{class: logging.FileHandler, filename: {CANARY}}}\n", "hydra.job_logging"),
    (f"  hydra_logging:\n{_LOGGING}{{class: logging.FileHandler, filename: {CANARY}}}\n", "hydra.hydra_logging"),
    (f"  sweeper:\n    _target_: os.system\n    command: {_TOUCH}\n", "hydra.sweeper"),
    (f"  sweeper:\n    params:\n      hydra.launcher.evil: {_CALL}\n", "hydra.launcher.evil"),
    ("  job:\n    env_copy: [HOME]\n", "hydra.job.env_copy"),
    (f"  job:\n    env_set: {{PYTHONSTARTUP: {FOLDER}/evil.py}}\n", "hydra.job.env_set"),
    (f"  searchpath: ['file://{FOLDER}', 'pkg://evil']\n", "hydra.searchpath"),
]
_MINE = "decay:\n  _target_: evil.Evil\n"
_TRUSTING = [
    (f"trust: [evil]\n{_MINE}", "trust", ()),
    (f"trust: evil\n{_MINE}", "trust", ()),
    (f"LCM_TRUST: evil\n{_MINE}", "decay._target_", ()),
    (f"{_MINE}  trust: [evil]\n", "decay._target_", ()),
    (f"{_MINE}hydra:\n  job:\n    env_set: {{LCM_TRUST: evil}}\n", "hydra.job.env_set", ()),
    (f"hydra:\n  sweeper:\n    params:\n      +trust: evil\n{_MINE}", "trust", ("-m",)),
    (
        f"executor:\n  _target_: eval.executor.Ray\n  runtime_env: {{pip: [{FOLDER}]}}\n",
        "executor.runtime_env",
        (),
    ),
    ("executor:\n  _target_: eval.executor.Ray\n  address: ray://203.0.113.1:10001\n", "executor.address", ()),
]
_MODULES = ["evil.Evil", "evil.none", "evil.Evil.__init__", "experiment.evil.Evil"]
_PLACES = ["pkg://evil", "pkg://evil/conf", "structured://evil", "evil://x"]
_TAGS = [
    f"!!python/object/apply:os.system ['{_TOUCH}']\n",
    f"_target_: lcm.retrieval.decay.NoDecay\nevil: !!python/object/apply:os.system ['{_TOUCH}']\n",
    f"_target_: !!python/name:os.system\ncommand: {_TOUCH}\n",
    f"evil: !!python/object/new:subprocess.Popen [[touch, {CANARY}]]\n",
]
_NO_PATHS = [
    "os", "''", "[os.system]", "{_target_: os.system}", "7", "null", "'os.system '", "'os..system'", "os/system",
    "lcm.retrieval.decay", "lcm.retrieval.decay", "lcm.retrieval.decay.NoDecay.__init__",
    "lcm.retrieval.decay.NoDecay.__class__", "eval.tracking.mlflow_log.Mlflow", "lcm.retrieval.decay.nodecay",
]  # fmt: skip
_HEADERS = [
    ("hydra.launcher", "hydra.launcher.command"), ("hydra.callbacks.evil", "hydra.callbacks.evil"), ("trust", "trust"),
    ("executor", "executor"), ("memory.decay", "decay"),
]  # fmt: skip
_SWEPT_VALUES = [
    (["decay._target_: os.system,os.popen"], "decay._target_"),
    ([f"+measures.evil: \"{{_target_: os.system, command: 'touch {CANARY}'}}\""], "measures.evil._target_"),
    ([f"hydra.sweep.dir: {CANARY}"], "hydra.sweep.dir"),
    (["hydra.searchpath: '[pkg://evil]'"], "hydra.searchpath"),
    (["executor: ray", "executor.address: ray://203.0.113.1:1"], "executor.address"),
    ([f"tracking.uri: sqlite:///{CANARY}"], "tracking.uri"),
    ([f"stages.directory: {CANARY}"], "stages.directory"),
]
_OUTSIDE = ["/../outside@evil", "../../outside@evil", f"/{FOLDER}/../outside@evil", "override /decay: ../../outside"]
_PLACES_OF_MLFLOW = [f"sqlite:///{CANARY}", f"file://{CANARY}", CANARY, "sqlite:///../mlflow.db"]
_LOGGING_TO_MLFLOW = ("tracking=mlflow",)
