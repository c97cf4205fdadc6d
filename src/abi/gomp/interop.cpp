// SPDX-License-Identifier: BSD-3-Clause
// Role: interop objects, of which there are none, and what devices are called.
// Invariant: an `interop` construct sets every object to omp_interop_none and waits for what it
// depends on; a property of none is none, with the code that says so. gcc's Fortran gets texts by
// two hidden arguments in front.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "abi/gomp/host_device.hpp"
#include "abi/gomp/runtime.hpp"
#include "abi/gomp/task_clauses.hpp"

#pragma GCC visibility push(default)

using namespace hiroba::abi;

namespace {

/// omp_interop_rc_t
constexpr int code_empty = -1, code_out_of_range = -2, code_first = 1;
/// omp_interop_property_t counts down from -1.
constexpr int property_first = -1, property_last = -9;
constexpr std::array property_names = {"fr_id",       "fr_name",        "vendor",
                                       "vendor_name", "device_num",     "platform",
                                       "device",      "device_context", "targetsync"};
static_assert(property_names.size() == property_first - property_last + 1);
/// From omp_irc_no_value down to omp_irc_type_str.
constexpr std::array code_texts = {"there is no value",
                                   "success",
                                   "the object is omp_interop_none",
                                   "there is no property of that number",
                                   "the property is an integer",
                                   "the property is a pointer",
                                   "the property is a string"};
constexpr const char* no_text = nullptr;

constexpr int invalid_device = -4;
/// As gcc's runtime calls the host, and as LLVM's does.
constexpr const char* host_name = "OMP_INITIAL_DEVICE";
constexpr std::string_view host_name_by_llvm = "HOST";

bool is_property(int property) noexcept {
    return property <= property_first && property >= property_last;
}

template <class T>
T none(int property, int* code) noexcept {
    if (code != nullptr) *code = is_property(property) ? code_empty : code_out_of_range;
    return T{};
}

/// A function of Fortran returns a text.
void give(const char* text, const char** result, std::size_t* length) noexcept {
    *result = text;
    *length = text != nullptr ? std::strlen(text) : 0;
}

int device_called(std::string_view name) noexcept {
    constexpr int initial_device = -1;
    return name == host_name || name == host_name_by_llvm ? initial_device : invalid_device;
}

}  // namespace

extern "C" {

void GOMP_interop(int, int made, void*** objects, const int*, const char**, int, void**, int ended,
                  void*** ended_objects, unsigned, void** depend) {
    note_caller();
    for (int i = 0; i < ended; ++i) *ended_objects[i] = nullptr;
    for (int i = 0; i < made; ++i) *objects[i] = nullptr;
    if (depend != nullptr) runtime().task_wait_for(read_depend_clause(depend));
}

int omp_get_num_interop_properties(const void*) { return 0; }  // of ours, beyond the standard's
std::intptr_t omp_get_interop_int(const void*, int property, int* code) {
    return none<std::intptr_t>(property, code);
}
void* omp_get_interop_ptr(const void*, int property, int* code) {
    return none<void*>(property, code);
}
const char* omp_get_interop_str(const void*, int property, int* code) {
    return none<const char*>(property, code);
}
const char* omp_get_interop_name(const void*, int property) {
    if (!is_property(property)) return no_text;
    return property_names[static_cast<std::size_t>(property_first - property)];
}
const char* omp_get_interop_type_desc(const void*, int) { return no_text; }
const char* omp_get_interop_rc_desc(const void*, int code) {
    const auto at = static_cast<std::size_t>(code_first - code);
    return code <= code_first && at < code_texts.size() ? code_texts[at] : no_text;
}

void omp_get_interop_str_(const char** result, std::size_t* length, const void* object,
                          int property, int* code) {
    give(omp_get_interop_str(object, property, code), result, length);
}
void omp_get_interop_name_(const char** result, std::size_t* length, const void* object,
                           int property) {
    give(omp_get_interop_name(object, property), result, length);
}
void omp_get_interop_type_desc_(const char** result, std::size_t* length, const void* object,
                                int property) {
    give(omp_get_interop_type_desc(object, property), result, length);
}
void omp_get_interop_rc_desc_(const char** result, std::size_t* length, const void* object,
                              int code) {
    give(omp_get_interop_rc_desc(object, code), result, length);
}
// LLVM's runtime has names with `_` for these as well, gcc's has none.
int omp_get_num_interop_properties_(const void* object) {
    return omp_get_num_interop_properties(object);
}
std::intptr_t omp_get_interop_int_(const void* object, const int* property, int* code) {
    return omp_get_interop_int(object, *property, code);
}
void* omp_get_interop_ptr_(const void* object, const int* property, int* code) {
    return omp_get_interop_ptr(object, *property, code);
}

const char* omp_get_uid_from_device(int device) { return is_host(device) ? host_name : no_text; }
int omp_get_device_from_uid(const char* name) {
    return name != nullptr ? device_called(name) : invalid_device;
}
void omp_get_uid_from_device_(const char** result, std::size_t* length, std::int32_t device) {
    give(omp_get_uid_from_device(device), result, length);
}
void omp_get_uid_from_device_8_(const char** result, std::size_t* length, std::int64_t device) {
    const auto number = static_cast<int>(device);
    give(number == device ? omp_get_uid_from_device(number) : no_text, result, length);
}
int omp_get_device_from_uid_(const char* name, std::size_t length) {
    return device_called({name, length});
}

}  // extern "C"
