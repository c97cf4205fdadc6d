// SPDX-License-Identifier: BSD-3-Clause
// Role: entry points of clang's runtime that are not built, or that no clang of today calls: each
// ends the program with one line.
// Invariant: as in gomp/refusals.cpp.
#include "abi/gomp/refusals.hpp"

#pragma GCC visibility push(default)

extern "C" {

HIROBA_REFUSED(__kmpc_threadprivate_register,
               "a threadprivate object with a constructor, built "
               "with -fno-openmp-use-tls, is")
HIROBA_REFUSED(__kmpc_threadprivate_register_vec,
               "a threadprivate array of objects, built with "
               "-fno-openmp-use-tls, is")
HIROBA_REFUSED(__kmpc_threadprivate, "threadprivate without a cache is")
HIROBA_REFUSED(__kmpc_sections_init, "sections by this name are")
HIROBA_REFUSED(__kmpc_next_section, "sections by this name are")
HIROBA_REFUSED(__kmpc_end_sections, "sections by this name are")
HIROBA_REFUSED(__kmpc_for_collapsed_init, "a loop nest that is not rectangular is")
HIROBA_REFUSED(__kmpc_process_loop_nest_rectang, "a loop nest cut at run time is")
HIROBA_REFUSED(__kmpc_calc_original_ivs_rectang, "a loop nest cut at run time is")
HIROBA_REFUSED(__kmpc_proxy_task_completed, "a proxy task is")
HIROBA_REFUSED(__kmpc_proxy_task_completed_ooo, "a proxy task is")

}  // extern "C"
