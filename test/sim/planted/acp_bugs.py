#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Bugs of the order of ACP's accesses, for plant.py: bug: (file, [(right, wrong), ...])."""

STATION = "src/acp/command_station.cpp"

ACP = {
    # ACP_HANDLE_NULL waits for what was issued before it.
    "acp_null_waits": (
        STATION,
        [("    if (order.kind == Order::Kind::none) return make_ready(position);\n",
          "    if (order.kind == Order::Kind::none) order.kind = Order::Kind::everything;\n")],
    ),
    # ACP_HANDLE_ALL waits for the access before it alone.
    "acp_all_is_one": (
        STATION,
        [("    if (order.kind == Order::Kind::previous) {\n        const std::uint64_t previous",
          "    if (order.kind == Order::Kind::everything) order = {Order::Kind::previous, mine - 1};\n"
          "    if (order.kind == Order::Kind::previous) {\n        const std::uint64_t previous")],
    ),
    # A handle is waited for, but not those before it.
    "acp_handle_is_one": (
        STATION,
        [("    if (order.kind == Order::Kind::previous) {\n        const std::uint64_t previous",
          "    if (order.kind == Order::Kind::up_to) order.kind = Order::Kind::previous;\n"
          "    if (order.kind == Order::Kind::previous) {\n        const std::uint64_t previous")],
    ),
    # ACP_HANDLE_CONT follows at once although the ways part.
    "acp_cont_follows_any_way": (
        STATION,
        [("    if (may_follow(route_of(before), route_of(mine))) {\n",
          "    if (true || may_follow(route_of(before), route_of(mine))) {\n")],
    ),
    # ACP_HANDLE_CONT waits for the answer although both take the same way.
    "acp_cont_waits": (
        STATION,
        [("    if (may_follow(route_of(before), route_of(mine))) {\n",
          "    if (false && may_follow(route_of(before), route_of(mine))) {\n")],
    ),
}
