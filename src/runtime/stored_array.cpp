#include "penstock/runtime/stored_array.hpp"

#include "penstock/host/error.hpp"

#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

namespace penstock {
namespace {

/// Of a regular file or a block device.
u64 size_of_file(std::string const& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) throw_os_error("open", path, errno, "check the path and its permissions");
  const off_t bytes = ::lseek(file, 0, SEEK_END);
  const int failed = errno;
  ::close(file);
  if (bytes < 0) throw_os_error("open", path, failed, "give a regular file or a block device");
  return static_cast<u64>(bytes);
}

}  // namespace

stored_array::stored_array(executor& on, std::string const& path, stored_array_options const& options)
    : path_(path), contents_(read_contents(path, options.raw)),
      controller_(software_options_for(on, options.engine, options.controller_threads)),
      cache_(on, {make_dataset(options)}, options.cache) {}

stored_array::contents stored_array::read_contents(std::string const& path, std::optional<raw_layout> const& raw) {
  if (raw) {
    if (raw->item_bytes == 0) throw_bad_input("open", path, "elements of 0 bytes: say how large one is");
    const u64 bytes = size_of_file(path);
    if (raw->offset <= bytes && raw->elements <= (bytes - raw->offset) / raw->item_bytes) return {*raw, 0};
    throw_bad_input("open", path,
                    std::to_string(raw->elements) + " elements of " + std::to_string(raw->item_bytes) + " bytes from byte " +
                        std::to_string(raw->offset) + ": the file has only " + std::to_string(bytes) +
                        " bytes; correct the layout");
  }
  const npy_header header = read_npy_header(path);
  if (header.fortran && header.shape.size() > 1) {
    throw_bad_input("open", path, "its array is in Fortran order: save numpy.ascontiguousarray of it");
  }
  return {{header.item_bytes, header.data_offset, header.count()}, header.kind};
}

void stored_array::check_type(u64 item_bytes, char kind) const {
  const char stored = contents_.kind;
  if (item_bytes == contents_.layout.item_bytes && (stored == 0 || kind == 0 || kind == stored)) return;
  auto name = [](u64 bytes, char k) {
    return std::to_string(bytes) + " bytes" + (k == 0 ? std::string() : " of kind '" + std::string(1, k) + "'");
  };
  throw_bad_input("view", path_,
                  "its elements have " + name(contents_.layout.item_bytes, stored) + ", not " + name(item_bytes, kind) +
                      ": ask for the type that the file holds");
}

dataset_spec stored_array::make_dataset(stored_array_options const& options) {
  const u32 space = controller_.add_namespace(file_namespace{path_, options.direct, options.writable});
  return {path_, size_of_file(path_), {volume_layout::single, {{&controller_, space}}}, options.writable};
}

}  // namespace penstock
