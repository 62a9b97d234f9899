# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
from __future__ import annotations

from ansible_collections.infera.baremetal.plugins.module_utils.systemd import last_log_lines, read_unit, run

SHOW = """LoadState=loaded
ActiveState={state}
NRestarts=2
MainPID={pid}
ExecMainStartTimestamp={stamp}
"""


def answer(text, status=0):
    return lambda command: (status, text)


def test_a_running_unit_and_its_start_in_seconds_since_the_epoch():
    # date -u -d '2026-11-30 20:11:37' +%s
    unit = read_unit("k3s", answer(SHOW.format(state="active", pid=812, stamp="Mon 2026-11-30 20:11:37 UTC")))

    assert (unit.loaded, unit.active, unit.restarts, unit.started, unit.running) == (
        True,
        "active",
        2,
        1796069497,
        True,
    )


def test_whether_it_starts_at_boot_and_whether_its_file_is_newer_than_what_systemd_knows():
    shown = SHOW.format(state="active", pid=1, stamp="") + "UnitFileState={}\nNeedDaemonReload={}\n"

    unit = read_unit("k3s", answer(shown.format("enabled", "yes")))
    assert (unit.enabled, unit.needs_reload) == (True, True)
    unit = read_unit("k3s", answer(shown.format("disabled", "no")))
    assert (unit.enabled, unit.needs_reload) == (False, False)


def test_a_unit_between_restarts_runs_nothing_although_systemd_remembers_a_start():
    unit = read_unit("k3s", answer(SHOW.format(state="activating", pid=0, stamp="Mon 2026-11-30 20:11:37 UTC")))

    assert unit.started is None
    assert not unit.running


def test_a_unit_that_does_not_exist_is_inactive():
    unit = read_unit(
        "k3s", answer("LoadState=not-found\nActiveState=inactive\nNRestarts=\nMainPID=0\nExecMainStartTimestamp=\n")
    )

    assert (unit.loaded, unit.active, unit.started) == (False, "inactive", None)


def test_a_host_without_systemd_is_no_traceback():
    assert not read_unit("k3s", answer("env: 'systemctl': No such file or directory", 127)).running


def test_tokens_are_cut_out_of_log_lines():
    token = "K10" + "ab" * 32 + "::server:hunter2"

    lines = last_log_lines("k3s", runner=answer(f"joining with {token} now\n\nready\n"))

    assert lines == ["joining with K10<cut> now", "ready"]


def test_a_program_that_cannot_be_run_is_no_traceback(tmp_path):
    program = tmp_path / "k3s"
    program.write_bytes(b"\x7fELF junk")

    assert run([str(program)])[0] == 126
    program.chmod(0o755)
    assert run([str(program)])[0] == 126
    assert run([str(tmp_path / "none")])[0] == 127
