// SPDX-License-Identifier: BSD-3-Clause
// Role: the strong id types every layer shares; installed, since programs use them too.
#pragma once

#include "hiroba/ids.hpp"
