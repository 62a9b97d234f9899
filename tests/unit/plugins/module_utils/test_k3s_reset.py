# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
from __future__ import annotations

import os

import pytest
from ansible_collections.infera.baremetal.plugins.module_utils.findings import FindingError
from ansible_collections.infera.baremetal.plugins.module_utils.k3s_reset import (
    Process,
    System,
    carry_out,
    end_processes,
    pod_mounts,
    pod_processes,
    remove,
    survey,
    unmount,
)

DATA_DIR = "/mnt/data/k3s"
OWN_UNIT = "# Written by infera.baremetal.k3s\n[Service]\n"
SHIM = ("/usr/bin/containerd-shim-runc-v2", "-namespace", "k8s.io", "-address", "/run/k3s/containerd/containerd.sock")


class Node(System):
    """A host below a folder: commands are written down, and answered from a table; time passes by sleeping only."""

    def __init__(self, root, answers=None):
        super().__init__(str(root))
        self.answers = answers or {}
        self.commands, self.killed, self.now = [], [], 0.0

    def file(self, path, text="x"):
        target = self.path(path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "w", encoding="utf-8") as handle:
            handle.write(text)

    def link(self, path, target):
        os.makedirs(os.path.dirname(self.path(path)), exist_ok=True)
        os.symlink(target, self.path(path))

    def mounts(self, *targets):
        lines = [f"{number} 1 8:1 / {target} rw - ext4 /dev/sda rw" for number, target in enumerate(targets, 30)]
        self.file("/proc/self/mountinfo", "\n".join(lines) + "\n")

    def process(self, pid, parent, *command, state="S"):
        self.file(f"/proc/{pid}/stat", f"{pid} (a ) b) {state} {parent} 1 1")
        self.file(f"/proc/{pid}/cmdline", "\0".join(command) + "\0")

    def run(self, command, text="", seconds=30, path=""):
        self.commands.append(" ".join(command))
        answer = next((value for key, value in self.answers.items() if " ".join(command).startswith(key)), (0, ""))
        return answer(self, command) if callable(answer) else answer

    def which(self, program, path=""):
        return None

    def kill(self, pid):
        self.killed.append(pid)
        for name in ("stat", "cmdline"):
            os.unlink(self.path(f"/proc/{pid}/{name}"))

    def clock(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


def installed(root, **answers):
    """A server as the k3s stage leaves it, with one pod."""
    node = Node(root, answers)
    node.file("/etc/systemd/system/k3s.service", OWN_UNIT)
    node.file("/etc/rancher/k3s/config.yaml", f"data-dir: {DATA_DIR}\nnode-name: lab1\n")
    for path in (
        "/etc/rancher/k3s/k3s.yaml",
        "/etc/rancher/node/password",
        "/usr/local/bin/k3s",
        f"{DATA_DIR}/server/token",
        f"{DATA_DIR}/agent/kubelet.kubeconfig",
        "/var/lib/kubelet/pods/1/x",
        "/var/log/pods/default_a_01234567-89ab-cdef-0123-456789abcdef/main/0.log",
        "/run/k3s/containerd/containerd.sock",
    ):
        node.file(path)
    node.link("/etc/systemd/system/multi-user.target.wants/k3s.service", "/etc/systemd/system/k3s.service")
    node.link("/var/log/containers/a.log", "/var/log/pods/default_a_01234567-89ab-cdef-0123-456789abcdef/main/0.log")
    return node


def code_of(caught):
    return [finding.code for finding in caught.value.findings]


def survey_of(node, data_dir=DATA_DIR):
    return survey(data_dir, ["10.42.0.0/16"], node)


def test_a_server_loses_what_k3s_made_and_keeps_its_node_password(tmp_path):
    node = installed(tmp_path)

    carry_out(survey_of(node), node)

    left = [os.path.join(folder, name) for folder, _folders, files in os.walk(tmp_path) for name in files]
    assert [os.path.relpath(path, tmp_path) for path in left] == ["etc/rancher/node/password"]
    assert not os.path.lexists(node.path("/etc/systemd/system/multi-user.target.wants/k3s.service"))
    assert not os.path.exists(node.path(DATA_DIR))
    assert "systemctl daemon-reload" in node.commands


def test_the_second_reset_has_nothing_to_do(tmp_path):
    node = installed(tmp_path)
    carry_out(survey_of(node), node)

    assert survey_of(node).empty


def test_a_host_without_the_collections_k3s_is_not_touched(tmp_path):
    node = Node(tmp_path)
    for path in ("/usr/local/bin/k3s", "/var/lib/kubelet/config.yaml", "/sys/class/net/cni0/address"):
        node.file(path)

    assert survey_of(node).empty


def test_a_reset_that_was_killed_anywhere_is_completed_by_the_next(tmp_path):
    paths = len(survey_of(installed(tmp_path / "plan")).paths)
    for kept in range(paths + 1):
        node = installed(tmp_path / str(kept))
        for path in survey_of(node).paths[:kept]:
            remove(path, node)

        plan = survey_of(node)

        carry_out(plan, node)
        assert survey_of(node).empty
        assert not os.path.exists(node.path(DATA_DIR))
        assert not os.path.exists(node.path("/etc/systemd/system/k3s.service"))


def test_a_first_run_that_was_killed_before_config_yaml_leaves_a_data_dir_that_is_known(tmp_path):
    node = Node(tmp_path)
    node.file(f"{DATA_DIR}/agent/infera/k3s-airgap-images-amd64.tar")
    node.file("/usr/local/bin/k3s")

    assert survey_of(node).paths == ["/usr/local/bin/k3s", f"{DATA_DIR}/agent", DATA_DIR]


def test_another_data_dir_than_the_installed_one_is_refused(tmp_path):
    with pytest.raises(FindingError) as caught:
        survey_of(installed(tmp_path), "/mnt/other")

    assert code_of(caught) == ["reset_data_dir_differs"]
    assert "/mnt/data/k3s" in str(caught.value) and "/mnt/other" in str(caught.value)


def test_a_data_dir_that_no_config_claims_is_refused(tmp_path):
    node = Node(tmp_path)
    node.file(f"{DATA_DIR}/server/token")

    with pytest.raises(FindingError) as caught:
        survey_of(node)

    assert code_of(caught) == ["reset_data_dir_unproven"]


@pytest.mark.parametrize("path", ["", "data", "/", "/var/lib", "/mnt/../usr"])
def test_a_data_dir_that_can_not_be_k3ss_alone_is_refused(tmp_path, path):
    node = Node(tmp_path)
    node.file("/etc/rancher/k3s/config.yaml", f"data-dir: {path}\n")

    with pytest.raises(FindingError) as caught:
        survey_of(node, path)

    assert code_of(caught) == ["reset_data_dir_unsafe"]


def test_a_data_dir_behind_a_symlink_is_refused(tmp_path):
    node = installed(tmp_path)
    os.rename(node.path("/mnt/data"), node.path("/mnt/disk"))
    node.link("/mnt/data", "disk")

    with pytest.raises(FindingError) as caught:
        survey_of(node)

    assert code_of(caught) == ["reset_data_dir_unsafe"]


def test_a_k3s_of_the_install_script_is_refused(tmp_path):
    node = installed(tmp_path)
    node.file("/etc/systemd/system/k3s.service", "[Service]\nExecStart=/usr/local/bin/k3s server\n")

    with pytest.raises(FindingError) as caught:
        survey_of(node)

    assert code_of(caught) == ["reset_foreign_k3s"]


def test_a_unit_of_a_package_is_refused(tmp_path):
    loaded = "LoadState=loaded\nActiveState=active\nFragmentPath=/usr/lib/systemd/system/k3s.service\n"
    node = Node(tmp_path, {"systemctl show k3s.service": (0, loaded)})

    with pytest.raises(FindingError) as caught:
        survey_of(node)

    assert code_of(caught) == ["reset_foreign_k3s"]


def test_what_others_keep_in_the_data_dir_and_beside_config_yaml_stays_and_is_named(tmp_path):
    node = installed(tmp_path)
    for path in (f"{DATA_DIR}/models/weights", "/etc/rancher/k3s/config.yaml.d/90-mine.yaml", "/var/log/pods/note"):
        node.file(path)

    plan = survey_of(node)
    carry_out(plan, node)

    for path in (f"{DATA_DIR}/models/weights", "/etc/rancher/k3s/config.yaml.d/90-mine.yaml", "/var/log/pods/note"):
        assert os.path.exists(node.path(path))
    assert [(finding.where, finding.message.split(":")[0]) for finding in plan.stays] == [
        (DATA_DIR, "models"),
        ("/etc/rancher/k3s", "config.yaml.d"),
    ]
    assert survey_of(node).empty


def test_of_a_folder_that_is_a_mount_point_only_the_content_goes(tmp_path):
    node = installed(tmp_path)
    node.file(f"{DATA_DIR}/agent/lost+found/x")
    node.mounts("/", f"{DATA_DIR}/agent", "/var/lib/kubelet", DATA_DIR)

    plan = survey_of(node)
    carry_out(plan, node)

    assert plan.keep_root == {f"{DATA_DIR}/agent", "/var/lib/kubelet"}
    assert os.listdir(node.path(DATA_DIR)) == ["agent"]
    assert os.listdir(node.path(f"{DATA_DIR}/agent")) == ["lost+found"]
    assert os.listdir(node.path("/var/lib/kubelet")) == []
    assert survey_of(node).empty


def test_a_disk_mounted_inside_of_what_would_go_is_refused(tmp_path):
    node = installed(tmp_path)
    node.file(f"{DATA_DIR}/models/weights")
    node.mounts("/", "/mnt/data", f"{DATA_DIR}/server/db", f"{DATA_DIR}/models")

    with pytest.raises(FindingError) as caught:
        survey_of(node)

    assert [(finding.code, finding.where) for finding in caught.value.findings] == [
        ("reset_foreign_mount", f"{DATA_DIR}/server/db")
    ]


def test_mounts_of_pods_come_deepest_first_and_a_cover_before_what_it_covers():
    targets = [
        "/",
        "/mnt/data",
        "/run/k3s/containerd/x/rootfs",
        "/var/lib/kubelet",
        "/var/lib/kubelet/pods/1/volumes/a",
        "/var/lib/kubelet/pods/1/volumes/a/b",
        "/var/lib/kubelet/pods/1/volumes/a",
        "/run/netns/cni-1",
        "/run/netns/mine",
        f"{DATA_DIR}/agent/containerd/tmpmounts/1",
        "/run/k3sother/x",
    ]

    assert pod_mounts(targets, DATA_DIR) == [
        "/var/lib/kubelet/pods/1/volumes/a/b",
        f"{DATA_DIR}/agent/containerd/tmpmounts/1",
        "/var/lib/kubelet/pods/1/volumes/a",
        "/var/lib/kubelet/pods/1/volumes/a",
        "/run/k3s/containerd/x/rootfs",
        "/run/netns/cni-1",
    ]


def test_only_shims_of_k3ss_containerd_and_what_descends_from_them_are_pods():
    shim, pause, worker, docker, other = (
        Process(10, 1, "S", SHIM),
        Process(11, 10, "S", ("/pause",)),
        Process(12, 11, "R", ("python3", "-m", "infera.server")),
        Process(20, 1, "S", (SHIM[0], "-address", "/run/containerd/containerd.sock")),
        Process(21, 20, "S", ("nginx",)),
    )
    editor = Process(30, 1, "S", ("vi", "/run/k3s/containerd/config.toml"))
    zombie = Process(13, 10, "Z", ("",))

    assert pod_processes([shim, pause, worker, docker, other, editor, zombie]) == [pause, worker, shim]


def test_pods_are_killed_before_their_shims(tmp_path):
    node = Node(tmp_path)
    node.process(10, 1, *SHIM)
    node.process(11, 10, "/pause")
    node.process(99, 1, "sshd")

    end_processes(node, 5)

    assert node.killed == [11, 10]


def test_a_process_that_does_not_die_is_told_and_nothing_is_unmounted_or_deleted(tmp_path):
    node = installed(tmp_path)
    node.process(10, 1, *SHIM)
    node.process(11, 10, "python3", "-m", "engine", state="D")
    node.kill = node.killed.append
    before = sorted(os.listdir(node.path("/etc/rancher/k3s")))

    with pytest.raises(FindingError) as caught:
        carry_out(survey_of(node), node, 2)

    assert code_of(caught) == ["reset_process_stays", "reset_process_stays"]
    assert "python3 -m engine" in str(caught.value)
    assert not any(command.startswith("umount") for command in node.commands)
    assert sorted(os.listdir(node.path("/etc/rancher/k3s"))) == before


def test_a_busy_mount_is_tried_again(tmp_path):
    tries = []

    def answer(node, command):
        tries.append(command[-1])
        if len(tries) < 3:
            return 32, "umount: target is busy."
        node.mounts("/")
        return 0, ""

    node = Node(tmp_path, {"umount": answer})
    node.mounts("/", "/run/k3s/containerd/a")

    unmount(DATA_DIR, node, 10)

    assert tries == ["/run/k3s/containerd/a"] * 3


def test_a_mount_that_stays_is_told_and_nothing_is_deleted(tmp_path):
    node = installed(tmp_path, umount=(32, "umount: /var/lib/kubelet/pods/1: target is busy."))
    node.mounts("/", "/var/lib/kubelet/pods/1")

    with pytest.raises(FindingError) as caught:
        carry_out(survey_of(node), node, 1)

    assert code_of(caught) == ["reset_mount_stays"]
    assert "target is busy" in str(caught.value)
    assert os.path.exists(node.path("/var/lib/kubelet/pods/1/x"))
    assert os.path.exists(node.path(f"{DATA_DIR}/server/token"))


def test_a_unit_that_runs_is_stopped_and_a_failing_stop_ends_the_reset(tmp_path):
    running = (0, "LoadState=loaded\nActiveState=active\nFragmentPath=/etc/systemd/system/k3s.service\n")
    node = installed(tmp_path)
    node.answers = {"systemctl show k3s.service": running, "systemctl stop": (1, "Job for k3s.service canceled.")}

    plan = survey_of(node)
    with pytest.raises(FindingError) as caught:
        carry_out(plan, node)

    assert plan.units == ["k3s"]
    assert code_of(caught) == ["reset_unit_stays"]
    assert "canceled" in str(caught.value)


def test_interfaces_and_routes_of_pods_go(tmp_path):
    routes = '[{"dst": "10.42.1.0/24", "gateway": "10.77.0.12", "dev": "eth0"}, {"dst": "10.42.0.0/24", "dev": "cni0"}]'
    node = installed(tmp_path)
    node.answers = {"ip -j -4 route show root 10.42.0.0/16": (0, routes)}
    node.file("/sys/class/net/cni0/address")
    node.file("/sys/class/net/eth0/address")

    plan = survey_of(node)
    carry_out(plan, node)

    assert plan.interfaces == ["cni0"]
    assert [route.words for route in plan.routes] == [["10.42.1.0/24", "via", "10.77.0.12", "dev", "eth0"]]
    assert "ip link delete cni0" in node.commands
    assert "ip -4 route del 10.42.1.0/24 via 10.77.0.12 dev eth0" in node.commands


def test_the_selinux_equivalence_of_the_data_dir_goes(tmp_path):
    node = installed(tmp_path)
    node.file(
        "/etc/selinux/targeted/contexts/files/file_contexts.subs",
        f"/srv/www /var/www\n{DATA_DIR} /var/lib/rancher/k3s\n",
    )

    carry_out(survey_of(node), node)

    assert "semanage fcontext --delete --equal /var/lib/rancher/k3s /mnt/data/k3s" in node.commands


def test_a_link_in_what_goes_is_removed_and_not_followed(tmp_path):
    node = Node(tmp_path)
    node.file("/precious/file")
    node.file("/run/k3s/a/b")
    node.link("/run/k3s/a/out", node.path("/precious"))

    remove("/run/k3s", node)

    assert os.path.exists(node.path("/precious/file"))
    assert not os.path.exists(node.path("/run/k3s"))


def test_a_diff_names_all_that_goes(tmp_path):
    node = installed(tmp_path)
    node.process(10, 1, *SHIM)
    node.mounts("/", "/run/k3s/containerd/a")

    lines = survey_of(node).lines()

    assert f"process 10 {' '.join(SHIM)}" in lines
    assert "mount /run/k3s/containerd/a" in lines
    assert f"{DATA_DIR}/server" in lines


def test_kill_of_a_process_that_has_ended_is_no_error():
    pid = os.spawnlp(os.P_NOWAIT, "true", "true")
    os.waitpid(pid, 0)

    System().kill(pid)
