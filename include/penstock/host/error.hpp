// How host code says that something cannot be done: one exception type, one sentence with the operation, the object, what is
// wrong and what to do, for example
//     open /data/x.npy: shape (3, 0): an array needs at least one row
#pragma once

#include "penstock/core/status.hpp"

#include <stdexcept>
#include <string>

namespace penstock {

/// bad_input: the caller asked for something that cannot be (Python: ValueError). world: the machine refused (Python:
/// penstock.Error, an OSError, with `code()` as its errno).
enum class error_kind { bad_input, world };

class error : public std::runtime_error {
 public:
  error(error_kind kind, std::string const& sentence, int code = 0) : std::runtime_error(sentence), kind_(kind), code_(code) {}

  error_kind kind() const { return kind_; }
  /// errno, or 0 where there is none.
  int code() const { return code_; }

 private:
  error_kind kind_;
  int code_;
};

/// "operation object: problem". The problem ends with the remedy.
[[noreturn]] void throw_bad_input(std::string const& operation, std::string const& object, std::string const& problem);

/// The same for what the machine refused; the text of `code` (an errno) is put before `remedy`.
[[noreturn]] void throw_os_error(std::string const& operation, std::string const& object, int code, std::string const& remedy);

/// A status in words: "NVMe status 0x281 (unrecovered read error)", "Input/output error", "no answer before the deadline".
std::string describe(status s);

/// What stands for a status as `error::code()`: the kernel's own errno, ENOSPC where there is no room, else EIO.
int errno_of(status s);

/// The same exception for a status that an access ended with.
[[noreturn]] void throw_status(std::string const& operation, std::string const& object, status s);

}  // namespace penstock
