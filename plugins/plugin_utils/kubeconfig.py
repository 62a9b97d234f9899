# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A server's own kubeconfig, made usable from elsewhere."""

from __future__ import annotations

import yaml


def usable_from_elsewhere(text: str, server: str, name: str) -> str:
    """The kubeconfig with the server's URL, and cluster, user and context called C(name). Raises ValueError, without the text."""
    # Templating hands over a subclass of str, which YAML's safe dumper refuses.
    server, name = f"{server}", f"{name}"
    try:
        config = yaml.safe_load(text)
        cluster, user = config["clusters"][0], config["users"][0]
        cluster["cluster"]["server"] = server
    except (yaml.YAMLError, KeyError, IndexError, TypeError) as error:
        # The text is a secret: only the kind of error is told.
        raise ValueError(f"the server's kubeconfig is not one: {type(error).__name__}") from None
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
