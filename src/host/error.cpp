#include "penstock/host/error.hpp"

#include "penstock/core/nvme_status.hpp"
#include "penstock/core/retry_policy.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace penstock {
namespace {

std::string describe_failure(u16 code) {
  switch (static_cast<failure>(code)) {
    case failure::deadline: return "no answer before the deadline";
    case failure::no_frame: return "no free frame before the deadline: all that could take the line are pinned or in flight";
    case failure::controller_failed: return "the controller has failed and takes no more commands";
    case failure::resetting: return "the queue is being reset";
    case failure::pin_limit: return "the line has as many pins as can be counted";
    case failure::out_of_range: return "the line lies outside of the dataset";
  }
  return "unknown failure " + std::to_string(code);
}

}  // namespace

std::string describe(status s) {
  switch (s.domain) {
    case status_domain::ok: return "success";
    case status_domain::os: return std::strerror(s.code);
    case status_domain::penstock: return describe_failure(s.code);
    case status_domain::nvme: break;
  }
  char number[32];
  std::snprintf(number, sizeof number, "NVMe status 0x%03x", s.number());
  char const* name = name_of_nvme(s.number());
  return name == nullptr ? std::string(number) : std::string(number) + " (" + name + ")";
}

void throw_bad_input(std::string const& operation, std::string const& object, std::string const& problem) {
  throw error(error_kind::bad_input, operation + " " + object + ": " + problem);
}

void throw_os_error(std::string const& operation, std::string const& object, int code, std::string const& remedy) {
  throw error(error_kind::world, operation + " " + object + ": " + std::strerror(code) + ": " + remedy, code);
}

int errno_of(status s) {
  if (s.domain == status_domain::os) return s.code;
  return classify(s) == error_class::space ? ENOSPC : EIO;
}

void throw_status(std::string const& operation, std::string const& object, status s) {
  throw error(error_kind::world, operation + " " + object + ": " + describe(s), errno_of(s));
}

}  // namespace penstock
