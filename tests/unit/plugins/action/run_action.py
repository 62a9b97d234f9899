# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Runs an action plugin in this process; the task, the connection and the play around it are doubles."""

from __future__ import annotations

from types import SimpleNamespace

from ansible.parsing.dataloader import DataLoader
from ansible.playbook.task import Task
from ansible.template import Templar


def run(action, check_mode=False, **arguments):
    task = Task()
    task.args = arguments
    task.check_mode = check_mode
    task.async_val = 0
    loader = DataLoader()
    connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir=None), has_pipelining=False)
    return action(
        task, connection, SimpleNamespace(check_mode=check_mode, no_log=False), loader, Templar(loader), None
    ).run(task_vars={})
