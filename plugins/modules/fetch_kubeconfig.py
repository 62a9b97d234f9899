#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
module: fetch_kubeconfig
short_description: Bring a server's kubeconfig to the controller, usable from there
description:
  - k3s writes a kubeconfig that points at loopback and calls everything C(default). This sets the server's URL, and names the cluster,
    the user and the context after the cluster, so that several files can be merged.
  - The file is written 0600, beside and renamed. Its content is in no result, diff or log.
author:
  - infera.baremetal authors (@infera-project)
attributes:
  check_mode:
    description: Says whether the file would change.
    support: full
  diff_mode:
    description: Names the file, and not what is in it.
    support: partial
  action:
    description: Reads on the host by M(ansible.builtin.slurp), and writes on the controller.
    support: full
options:
  src:
    description: The kubeconfig on the host.
    type: path
    default: /etc/rancher/k3s/k3s.yaml
  dest:
    description: The kubeconfig on the controller. A relative path is taken from where the run starts.
    type: path
    required: true
  server:
    description: The URL of the API as the controller reaches it.
    type: str
    required: true
  name:
    description: The name of the cluster.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Bring the kubeconfig to the controller
  infera.baremetal.fetch_kubeconfig:
    dest: artifacts/east/kubeconfig
    server: https://10.1.0.1:6443
    name: east
"""

RETURN = r"""
path:
  description: The file on the controller.
  type: str
  returned: success
"""
