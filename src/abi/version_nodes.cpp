// SPDX-License-Identifier: BSD-3-Clause
// Role: one symbol for each version node of exports.map.
// Invariant: no code reads them; the loader looks for the nodes' names alone.
extern "C" {
[[gnu::visibility("default"), gnu::used]] extern const char hiroba_version_GOMP_1_0 = 0;
[[gnu::visibility("default"), gnu::used]] extern const char hiroba_version_GOMP_2_0 = 0;
[[gnu::visibility("default"), gnu::used]] extern const char hiroba_version_GOMP_3_0 = 0;
[[gnu::visibility("default"), gnu::used]] extern const char hiroba_version_GOMP_4_0 = 0;
[[gnu::visibility("default"), gnu::used]] extern const char hiroba_version_GOMP_4_0_1 = 0;
[[gnu::visibility("default"), gnu::used]] extern const char hiroba_version_GOMP_4_5 = 0;
[[gnu::visibility("default"), gnu::used]] extern const char hiroba_version_GOMP_5_0 = 0;
[[gnu::visibility("default"), gnu::used]] extern const char hiroba_version_GOMP_5_0_1 = 0;
[[gnu::visibility("default"), gnu::used]] extern const char hiroba_version_GOMP_5_1 = 0;
[[gnu::visibility("default"), gnu::used]] extern const char hiroba_version_GOMP_5_1_1 = 0;
[[gnu::visibility("default"), gnu::used]] extern const char hiroba_version_GOMP_5_1_2 = 0;
[[gnu::visibility("default"), gnu::used]] extern const char hiroba_version_GOMP_5_1_3 = 0;
[[gnu::visibility("default"), gnu::used]] extern const char hiroba_version_GOMP_6_0 = 0;
[[gnu::visibility("default"), gnu::used]] extern const char hiroba_version_GOMP_6_0_1 = 0;
[[gnu::visibility("default"), gnu::used]] extern const char hiroba_version_OMP_1_0 = 0;
[[gnu::visibility("default"), gnu::used]] extern const char hiroba_version_OMP_2_0 = 0;
[[gnu::visibility("default"), gnu::used]] extern const char hiroba_version_OMP_3_0 = 0;
[[gnu::visibility("default"), gnu::used]] extern const char hiroba_version_OMP_3_1 = 0;
[[gnu::visibility("default"), gnu::used]] extern const char hiroba_version_OMP_4_0 = 0;
[[gnu::visibility("default"), gnu::used]] extern const char hiroba_version_OMP_4_5 = 0;
[[gnu::visibility("default"), gnu::used]] extern const char hiroba_version_OMP_5_0 = 0;
[[gnu::visibility("default"), gnu::used]] extern const char hiroba_version_OMP_5_0_1 = 0;
[[gnu::visibility("default"), gnu::used]] extern const char hiroba_version_OMP_5_0_2 = 0;
[[gnu::visibility("default"), gnu::used]] extern const char hiroba_version_OMP_5_1 = 0;
[[gnu::visibility("default"), gnu::used]] extern const char hiroba_version_OMP_5_1_1 = 0;
[[gnu::visibility("default"), gnu::used]] extern const char hiroba_version_OMP_5_2 = 0;
[[gnu::visibility("default"), gnu::used]] extern const char hiroba_version_GOACC_2_0 = 0;
[[gnu::visibility("default"), gnu::used]] extern const char hiroba_version_OACC_2_0 = 0;
[[gnu::visibility("default"), gnu::used]] extern const char hiroba_version_GOACC_2_0_1 = 0;
[[gnu::visibility("default"), gnu::used]] extern const char hiroba_version_GOACC_2_0_2 = 0;
[[gnu::visibility("default"), gnu::used]] extern const char hiroba_version_OACC_2_0_1 = 0;
[[gnu::visibility("default"), gnu::used]] extern const char hiroba_version_OACC_2_5 = 0;
[[gnu::visibility("default"), gnu::used]] extern const char hiroba_version_OACC_2_5_1 = 0;
[[gnu::visibility("default"), gnu::used]] extern const char hiroba_version_OACC_2_6 = 0;
[[gnu::visibility("default"), gnu::used]] extern const char hiroba_version_VERSION = 0;
}
