// SPDX-License-Identifier: BSD-3-Clause
// Role: what only a trial tells about this kernel's userfaultfd and PAGEMAP_SCAN.
// Invariant: a trial leaves nothing behind; it uses pages of its own only.
#pragma once

namespace hiroba::dsm {

/// Whether a scan passes over mappings without asynchronous write protection in silence. Where it
/// does not, one scan must not reach from one attached range into another.
bool scan_skips_foreign(int uffd, int pagemap);

}  // namespace hiroba::dsm
