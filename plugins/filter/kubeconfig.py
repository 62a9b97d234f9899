# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
name: kubeconfig
short_description: Make a server's own kubeconfig usable from elsewhere
description:
  - k3s writes a kubeconfig that points at loopback and calls everything C(default). This filter sets the server's URL and
    names the cluster, the user and the context after the cluster, so that several files can be merged.
author:
  - infera.baremetal authors (@infera-project)
options:
  _input:
    description: The text of C(/etc/rancher/k3s/k3s.yaml).
    type: str
    required: true
  server:
    description: The URL of the API as others reach it.
    type: str
    required: true
  name:
    description: The name of the cluster.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Show the context's name
  ansible.builtin.debug:
    msg: "{{ (text | infera.baremetal.kubeconfig(server='https://10.1.0.1:6443', name='east') | from_yaml)['current-context'] }}"
"""

RETURN = r"""
_value:
  description: The text of the kubeconfig. It holds a secret.
  type: str
"""

from typing import Any

import yaml
from ansible.errors import AnsibleFilterError


def kubeconfig(text: str, server: str, name: str) -> str:
    # Templating hands over a subclass of str, which YAML's safe dumper refuses.
    server, name = f"{server}", f"{name}"
    try:
        config = yaml.safe_load(text)
        cluster, user = config["clusters"][0], config["users"][0]
        cluster["cluster"]["server"] = server
    except (yaml.YAMLError, KeyError, IndexError, TypeError) as error:
        # The text is a secret: only the kind of error is told.
        raise AnsibleFilterError(f"the server's kubeconfig is not one: {type(error).__name__}") from None
    cluster["name"] = user["name"] = name
    result = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [cluster],
        "users": [user],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    return yaml.safe_dump(result, sort_keys=False)


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"kubeconfig": kubeconfig}
