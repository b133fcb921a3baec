#include "libs/media/names.hpp"

#include "penstock/host/error.hpp"

#include <utility>

namespace penstock::media {
namespace {

template <class Kind, std::size_t Count>
Kind parse(std::string const& what, std::string const& name, std::pair<char const*, Kind> const (&known)[Count]) {
  std::string all;
  for (std::size_t k = 0; k < Count; ++k) {
    if (name == known[k].first) return known[k].second;
    all += std::string(k == 0 ? "" : k + 1 < Count ? ", " : " or ") + known[k].first;
  }
  throw_bad_input("open", what + " " + name, "there is no such " + what + ": choose " + all);
}

}  // namespace

io_engine parse_engine(std::string const& name) {
  return parse<io_engine>("engine", name,
                          {{"auto", io_engine::automatic}, {"io_uring", io_engine::io_uring}, {"pread", io_engine::pread}});
}

directory_kind parse_directory(std::string const& name) {
  return parse<directory_kind>(
      "directory", name,
      {{"auto", directory_kind::automatic}, {"direct", directory_kind::direct}, {"set", directory_kind::set_associative}});
}

char const* name_of(directory_kind kind) {
  switch (kind) {
    case directory_kind::automatic: return "auto";
    case directory_kind::direct: return "direct";
    case directory_kind::set_associative: break;
  }
  return "set";
}

placement parse_placement(std::string const& name) {
  return parse<placement>("placement", name,
                          {{"storage", placement::storage},
                           {"host", placement::host},
                           {"host-cached", placement::host_cached},
                           {"hbm", placement::hbm}});
}

volume_layout parse_layout(std::string const& name) {
  return parse<volume_layout>("layout", name, {{"striped", volume_layout::striped}, {"replicated", volume_layout::replicated}});
}

memory_kind parse_place(std::string const& name) {
  return parse<memory_kind>("place", name, {{"hbm", memory_kind::local}, {"host", memory_kind::shared}});
}

}  // namespace penstock::media
