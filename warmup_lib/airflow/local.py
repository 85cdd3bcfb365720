"""`make ui`: Airflow with the DAGs on the embedded stack, for one person on one machine.

Everything listens on loopback. Airflow keeps its database and logs in `.airflow`; what was started
here is stopped at Ctrl-C, while an embedded stack that ran before goes on.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import httpx
import psutil
import yaml

from warmup_lib import pipeline, stack
from warmup_lib.config import load_config, warmup_home
from warmup_lib.stack.process import free_port

ROOT = Path(__file__).parents[2]
READY_S = 240.0
STOP_S = 20.0

_AIRFLOW = (sys.executable, "-m", "airflow")
_COMPONENTS: Mapping[str, tuple[str, ...]] = {
    "api-server": (),
    "dag-processor": (),
    # Task logs are read from the disk. Airflow's log servers would listen on every interface.
    "scheduler": ("--skip-serve-logs",),
    "triggerer": ("--skip-serve-logs",),
}
_HEALTH = ("metadatabase", "scheduler", "dag_processor", "triggerer")


def main() -> None:
    """Start everything, print address and login, and stop it all at Ctrl-C, TERM or HUP."""
    # SIGINT too: a shell script starts what it puts in the background with SIGINT ignored.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    home = Path(os.environ.get("AIRFLOW_HOME") or ROOT / ".airflow").resolve()
    try:
        with embedded_stack(), airflow(home) as (url, processes):
            click.echo(f"{'Airflow':9} {url}  login: admin / {password(home)}")
            click.echo(_advice(config_file(home)))
            while all(process.poll() is None for process in processes.values()):
                time.sleep(0.5)
            raise SystemExit(f"a part of Airflow has ended; its log is in {home / 'ui'}")
    except KeyboardInterrupt:
        click.echo("\nstopped")


def _advice(file: Path) -> str:
    config = load_config(file)
    days = pipeline.open_lake(config).days("requests")
    newest = f"its newest log day is {days[-1]}" if days else "it has no logs yet"
    return (
        f"{'Lake':9} {config.lake}: {newest}\n"
        "The DAGs are paused. Switch one on in the list to schedule it, or trigger it to run it "
        "once, with a log day in its form.\nCtrl-C stops everything."
    )


@contextmanager
def embedded_stack() -> Iterator[None]:
    """Run the embedded stack for the block; one that runs already is used and left running."""
    home = warmup_home()
    state = stack.status(home)
    ran_before = bool(state.services)
    if not ran_before:
        state = stack.up(home, hosts=1, progress=lambda line: click.echo(f"  {line}"))
    try:
        for service in state.services.values():
            click.echo(f"{service.name:9} {service.url}")
        for reason in state.skipped:
            click.echo(f"skipped: {reason}")
        yield
    finally:
        if not ran_before:
            stack.down(home)


@contextmanager
def airflow(home: Path) -> Iterator[tuple[str, dict[str, subprocess.Popen[bytes]]]]:
    """Run Airflow for the block; yield its address and its processes by name.

    Raises:
        SystemExit: It can't be set up, or did not become ready in time.
    """
    click.echo("  starting Airflow (half a minute)")
    logs = home / "ui"
    logs.mkdir(parents=True, exist_ok=True)
    port = free_port()
    env = environment(home, port)
    for command in (("db", "migrate"), ("pools", "import", str(ROOT / "deploy" / "pools.json"))):
        _once(command, env, logs / f"{command[0]}.log")
    url = f"http://127.0.0.1:{port}"
    processes: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for name, options in _COMPONENTS.items():
            processes[name] = _start((name, *options), env, logs / f"{name}.log")
        _wait_ready(url, processes, logs)
        yield url, processes
    finally:
        _stop(list(processes.values()))


def environment(home: Path, port: int) -> dict[str, str]:
    """Return the environment of a private Airflow in `home` that serves on `port`."""
    url = f"http://127.0.0.1:{port}"
    settings = {
        "CORE__DAGS_FOLDER": str(ROOT / "dags"),
        "CORE__LOAD_EXAMPLES": "False",
        "CORE__PARALLELISM": "2",
        "CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        "CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin",
        "API__HOST": "127.0.0.1",
        "API__PORT": str(port),
        "API__BASE_URL": url,
        "API__WORKERS": "1",
        "API_AUTH__JWT_SECRET": secrets.token_hex(64),
    }
    return {
        **os.environ,
        **{f"AIRFLOW__{name}": value for name, value in settings.items()},
        "AIRFLOW_HOME": str(home),
        "WARMUP_CONFIG": str(config_file(home)),
    }


def password(home: Path) -> str:
    """Return the password that Airflow made for the user `admin`."""
    file = home / "simple_auth_manager_passwords.json.generated"
    return str(json.loads(file.read_text(encoding="utf-8"))["admin"])


def config_file(home: Path) -> Path:
    """Return the user's settings file, else one made for the log and lake of the last demo."""
    named = Path(os.environ.get("WARMUP_CONFIG") or ROOT / "warmup.yaml")
    if named.is_file():
        return named.resolve()
    demos = [m.parents[1] for m in (ROOT / ".demo").glob("*/log/manifest.json")]
    demo = max(demos, key=lambda d: d.stat().st_mtime, default=ROOT / ".demo" / "shipped-1")
    settings = {
        "lake": (demo / "lake").as_uri(),
        "schedule": {"inbox": f"{demo}/log/requests-*", "inbox_format": "jsonl"},
    }
    made = home / "warmup.yaml"
    made.write_text(yaml.safe_dump(settings), encoding="utf-8")
    return made


def _once(command: tuple[str, ...], env: dict[str, str], log: Path) -> None:
    with log.open("wb") as output:
        done = subprocess.run(
            [*_AIRFLOW, *command], cwd=ROOT, env=env, stdout=output, stderr=output, check=False
        )
    if done.returncode:
        raise SystemExit(f"`airflow {' '.join(command)}` failed; see {log}")


def _start(command: tuple[str, ...], env: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as output:
        return subprocess.Popen(
            [*_AIRFLOW, *command],
            cwd=ROOT,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            # A Ctrl-C at the terminal goes to this program alone, which stops the parts in order.
            start_new_session=True,
        )


def _stop(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Ask all components to end, then kill what is left of them and of their children."""
    family: list[psutil.Process] = []
    for process in processes:
        if process.poll() is None:
            family += psutil.Process(process.pid).children(recursive=True)
            process.terminate()
    deadline = time.monotonic() + STOP_S
    for process in processes:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    _, alive = psutil.wait_procs(family, timeout=1)
    for left in alive:
        left.kill()


def _wait_ready(url: str, processes: Mapping[str, subprocess.Popen[bytes]], logs: Path) -> None:
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline:
        ended = [name for name, process in processes.items() if process.poll() is not None]
        if ended:
            raise SystemExit(f"Airflow's {ended[0]} has ended; see {logs / ended[0]}.log")
        if all(_health(url).get(part, {}).get("status") == "healthy" for part in _HEALTH):
            return
        time.sleep(0.5)
    raise SystemExit(f"Airflow was not ready after {READY_S:.0f} s; its logs are in {logs}")


def _health(url: str) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = httpx.get(f"{url}/api/v2/monitor/health", timeout=5).json()
    except (httpx.HTTPError, ValueError):
        return {}
    return answer


if __name__ == "__main__":
    main()
