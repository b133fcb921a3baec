#include "libs/media/array_file.hpp"

#include "libs/graph/file.hpp"
#include "penstock/host/error.hpp"
#include "penstock/host/npy.hpp"

#include <cerrno>
#include <cstdio>
#include <filesystem>

namespace penstock::media {
namespace {

constexpr number_type types[] = {{'i', 4}, {'i', 8}, {'u', 4}, {'u', 8}, {'f', 4}, {'f', 8}};

std::string known_types() {
  std::string all;
  for (number_type const& each : types) all += (all.empty() ? "" : ", ") + each.name();
  return all;
}

}  // namespace

std::string number_type::name() const {
  return std::string(kind == 'f' ? "float" : kind == 'u' ? "uint" : "int") + std::to_string(8 * bytes);
}

number_type parse_number_type(std::string const& name) {
  for (number_type const& each : types) {
    if (name == each.name()) return each;
  }
  throw_bad_input("open", "dtype " + name, "it is not supported: choose one of " + known_types());
}

array_file describe_array(std::string const& path, std::string const& raw_type) {
  if (!raw_type.empty()) {
    const number_type type = parse_number_type(raw_type);
    const u64 bytes = graph::file::open(path).size();
    if (bytes % type.bytes != 0) {
      throw_bad_input("open", path,
                      std::to_string(bytes) + " bytes are no whole number of " + type.name() + ": name its dtype");
    }
    return {path, type, {bytes / type.bytes}, bytes / type.bytes, 0, true};
  }
  const npy_header header = read_npy_header(path);
  for (number_type const& each : types) {
    if (header.kind != each.kind || header.item_bytes != each.bytes) continue;
    if (header.fortran && header.shape.size() > 1) {
      throw_bad_input("open", path, "its array is in Fortran order: save numpy.ascontiguousarray of it");
    }
    if (header.data_offset % each.bytes != 0) {
      throw_bad_input("open", path,
                      "its data starts at byte " + std::to_string(header.data_offset) + ", which is no multiple of " +
                          std::to_string(each.bytes) + ": write it anew with NumPy");
    }
    return {path, each, header.shape, header.count(), header.data_offset, false};
  }
  throw_bad_input("open", path, header.describe() + ": its dtype is not supported: convert it to one of " + known_types());
}

new_array_file::new_array_file(std::string const& path, array_file const& like, bool replace) {
  std::error_code problem;
  const auto there = std::filesystem::symlink_status(path, problem);
  if (std::filesystem::exists(there)) {
    if (!std::filesystem::is_regular_file(there)) throw_bad_input("create", path, "it is no regular file: name another one");
    if (!replace) throw_bad_input("create", path, "it exists: name another file, or ask for it to be replaced");
    if (std::remove(path.c_str()) != 0) throw_os_error("replace", path, errno, "check that the folder can be written");
  }
  made_ = like;
  made_.path = path;
  made_.origin = like.raw ? 0 : npy_data_offset;
  const graph::file file = graph::file::create(path);
  try {
    if (!like.raw) {
      const std::string header = make_npy_header(like.type.kind, like.type.bytes, like.shape);
      file.write(0, std::as_bytes(std::span(header)));
    }
    std::filesystem::resize_file(path, made_.file_bytes(), problem);
    if (problem) throw_os_error("create", path, problem.value(), "free space there or choose another folder");
  } catch (...) {
    std::remove(path.c_str());
    throw;
  }
}

new_array_file::~new_array_file() {
  if (!kept_) std::remove(made_.path.c_str());
}

}  // namespace penstock::media
