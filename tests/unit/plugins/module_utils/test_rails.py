# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""rail_layouts/ holds one file a host. C(about) says what it stands for. C(ionic) cards are laid out first (see C(card)), then
C(files) (path -> content), C(folders) and C(links) (both ends below the root) come on top, and C(missing) and C(unreadable) paths
are taken away. What is expected: C(rails), each with the keys that matter, C(findings) of rails, C(host) findings, C(fixes)."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.infera.baremetal.plugins.module_utils import rails as module
from ansible_collections.infera.baremetal.plugins.module_utils.rails import parse_prefixes, parse_vendor, read, report

LAYOUTS = sorted((Path(__file__).parent / "rail_layouts").glob("*.yml"))


def write(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content + "\n")


def link(path: Path, target: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(os.path.relpath(target, path.parent.resolve()))


def card(root: Path, number: int) -> None:
    """An ionic NIC as the in-tree driver shows it, with a link-local and a routed GID and one empty slot."""
    pci = root / f"devices/pci0000:00/0000:{number:x}6:00.0"
    device = pci / f"infiniband/ionic_{number}"
    files = {
        pci / "vendor": "0x1dd8",
        pci / "numa_node": "0" if number < 4 else "1",
        pci / f"net/rail{number}/mtu": "9000",
        pci / f"infiniband_verbs/uverbs{number}/ibdev": f"ionic_{number}",
        pci / f"infiniband_verbs/uverbs{number}/abi_version": "1",
        device / "fw_ver": "1.117.5-a-77",
        device / "ports/1/link_layer": "Ethernet",
        device / "ports/1/state": "4: ACTIVE",
        device / "ports/1/phys_state": "5: LinkUp",
        device / "ports/1/rate": "400 Gb/sec (4X NDR)",
        device / "ports/1/gids/0": "fe80:0000:0000:0000:0000:0000:0000:0001",
        device / "ports/1/gids/1": f"fd00:000a:{number:04x}:0001:0000:0000:0000:0002",
        device / "ports/1/gids/2": "0000:0000:0000:0000:0000:0000:0000:0000",
    }
    for index in (0, 1):
        files[device / f"ports/1/gid_attrs/types/{index}"] = "RoCE v2"
        files[device / f"ports/1/gid_attrs/ndevs/{index}"] = f"rail{number}"
    for path, content in files.items():
        write(path, content)
    link(device / "device", pci)
    link(pci / f"net/rail{number}/device", pci)
    link(root / f"class/infiniband/ionic_{number}", device)
    link(root / f"class/net/rail{number}", pci / f"net/rail{number}")
    link(root / f"class/infiniband_verbs/uverbs{number}", pci / f"infiniband_verbs/uverbs{number}")


def lay_out(root: Path, layout: dict[str, Any]) -> str:
    for number in range(layout.get("ionic", 0)):
        card(root, number)
    for path, content in layout.get("files", {}).items():
        write(root / path, content)
    for path in layout.get("folders", []):
        (root / path).mkdir(parents=True)
    for path, target in layout.get("links", {}).items():
        link(root / path, root / target)
    for path in layout.get("missing", []) + layout.get("unreadable", []):
        shutil.rmtree(root / path) if (root / path).is_dir() and not (root / path).is_symlink() else (
            root / path
        ).unlink()
    for path in layout.get("unreadable", []):
        (root / path).mkdir()  # A folder cannot be read as a file, by root neither.
    return str(root)


@pytest.mark.parametrize("path", LAYOUTS, ids=lambda path: path.stem)
def test_a_host_as_it_is_and_what_is_wrong_with_it(path: Path, tmp_path: Path) -> None:
    layout = yaml.safe_load(path.read_text())
    root = lay_out(tmp_path, layout)
    vendors = [parse_vendor(text) for text in layout.get("vendors", [])]

    result = report(root, vendors, layout.get("expected", 0), layout.get("addresses"))

    rails = result["rails"]
    assert [
        {key: rail[key] if key != "gids" else list(rail[key]) for key in wanted}
        for rail, wanted in zip(rails, layout["rails"])
    ] == layout["rails"]
    assert len(rails) == len(layout["rails"])
    found = {
        f"{rail['rdma_device']}/{rail['port']}": [finding["code"] for finding in rail["findings"]]
        for rail in rails
        if rail["findings"]
    }
    assert found == layout.get("findings", {})
    assert [finding["code"] for finding in result["findings"]] == layout.get("host", [])
    fixes = "\n".join(finding["fix"] for rail in rails for finding in rail["findings"])
    assert [fix for fix in layout.get("fixes", []) if fix not in fixes] == []


def test_every_finding_is_one_line_that_names_its_rail(tmp_path: Path) -> None:
    for path in LAYOUTS:
        root = lay_out(tmp_path / path.stem, yaml.safe_load(path.read_text()))
        for rail in report(root, expected=8)["rails"]:
            for finding in rail["findings"]:
                assert finding["where"] == f"{rail['rdma_device']}/{rail['port']}"
                assert "\n" not in finding["message"] + finding["fix"]


def test_a_device_that_goes_while_it_is_read_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = lay_out(tmp_path, {"ionic": 2})
    device, read_text = tmp_path / "class/infiniband/ionic_1", module.sysfs.read_text

    def pulling_the_card(*parts: str) -> str | None:
        if parts[-1] == "state":
            device.unlink(missing_ok=True)
        return read_text(*parts)

    monkeypatch.setattr(module.sysfs, "read_text", pulling_the_card)

    rails, steady = read(root)

    assert ([rail.rdma_device for rail in rails], steady) == (["ionic_0"], True)


def test_devices_that_keep_changing_are_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listings = iter([[("ionic_0", 1)], [], [("ionic_0", 1)], []])
    monkeypatch.setattr(module, "_ports", lambda _root: next(listings))

    result = report(lay_out(tmp_path, {"ionic": 1}))

    assert [finding["code"] for finding in result["findings"]] == ["rails_changed"]
    assert [rail["rdma_device"] for rail in result["rails"]] == ["ionic_0"]


def test_seven_rails_are_named(tmp_path: Path) -> None:
    (finding,) = report(lay_out(tmp_path, {"ionic": 2}), expected=3)["findings"]

    assert finding["message"] == "2 rails, 3 expected: ionic_0, ionic_1"


def test_a_thousand_empty_slots_are_no_gids(tmp_path: Path) -> None:
    empty = {f"class/infiniband/ionic_0/ports/1/gids/{index}": "::" for index in range(2, 1024)}

    ((rail,), _steady) = read(lay_out(tmp_path, {"ionic": 1, "files": empty}))

    assert [gid.index for gid in rail.gids] == [0, 1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[]", {}),
        (
            '[{"ifname": "rail0", "addr_info": [{"local": "FD00:A::1", "prefixlen": 64}, {"label": "x"}]}, {}]',
            {"rail0": {"fd00:a::1": 64}},
        ),
        ('[{"ifname": "rail0"}]', {"rail0": {}}),
        ("", None),
        ("7", None),
        ("[7]", None),
        ('[{"ifname": "rail0", "addr_info": [{"local": "no address", "prefixlen": 64}]}]', None),
        ('[{"ifname": "rail0", "addr_info": [{"local": "fd00::1"}]}]', None),
    ],
)
def test_prefixes_from_iproute2(text: str, expected: Any) -> None:
    assert parse_prefixes(text) == expected


@pytest.mark.parametrize("text", ["0x1dd8", "0x1DD8", "7640", " 0x1dd8 "])
def test_a_vendor_is_a_pci_id(text: str) -> None:
    assert parse_vendor(text) == 0x1DD8


@pytest.mark.parametrize("text", ["", "ionic", "1dd8", "0x11dd8", "0", "-1"])
def test_what_is_no_vendor_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="is not a PCI vendor id; write it as '0x1dd8'"):
        parse_vendor(text)
