// SPDX-License-Identifier: BSD-3-Clause
// Role: the functions of switch.S, which says what they do.
#pragma once

extern "C" {
void hiroba_tasks_start(void** save, void* top, void* (*entry)(void*), void* argument);
[[noreturn]] void hiroba_tasks_jump(void* saved);
}
