// SPDX-License-Identifier: BSD-3-Clause
// Role: what the world may do wrong, as a value. Broken invariants go to base/fatal.hpp instead.
// Invariant: a Result holds exactly one of a value and an Error.
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace hiroba {

/// Why something failed; decides the exit status (docs/layers/base.md).
enum class ErrorKind {
    usage,        ///< the caller's words: exit status 64
    environment,  ///< the machine or its settings: exit status 78
    peer_lost,    ///< another node died or was disconnected
    refused,      ///< an argument outside what was registered or promised
    internal,     ///< a system call failed in a way that was not expected
};

/// One failure: `text` is one line naming the number that was wrong and the setting to change.
struct Error {
    ErrorKind kind = ErrorKind::internal;
    std::string text;
};

/// A value of type T or the Error that prevented it.
template <class T>
class [[nodiscard]] Result {
public:
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

    explicit operator bool() const { return state_.index() == 0; }
    T& operator*() { return std::get<0>(state_); }
    const T& operator*() const { return std::get<0>(state_); }
    T* operator->() { return &std::get<0>(state_); }
    const T* operator->() const { return &std::get<0>(state_); }
    const Error& error() const { return std::get<1>(state_); }

private:
    std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
public:
    Result() = default;
    Result(Error error) : error_(std::move(error)), failed_(true) {}

    explicit operator bool() const { return !failed_; }
    const Error& error() const { return error_; }

private:
    Error error_;
    bool failed_ = false;
};

}  // namespace hiroba
