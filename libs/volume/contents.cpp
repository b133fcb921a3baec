#include "libs/volume/contents.hpp"

#include "libs/volume/little_endian.hpp"

#include "penstock/core/bits.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>
#include <set>

namespace penstock::volumes {
namespace {

constexpr u64 table_magic = 0x434f544b54534e50;  // "PNSTKTOC"
constexpr u64 head_bytes = 64;
constexpr u64 record_bytes = 512;
constexpr u64 name_bytes = 256;
constexpr u64 of_folder_flag = 1, fortran_flag = 2;
static_assert(head_bytes + most_files * record_bytes <= most_table_bytes);

/// RFC 3629: no overlong forms, no surrogates, nothing beyond U+10FFFF.
bool is_utf8(std::string const& text) {
  constexpr u32 least[] = {0, 0x80, 0x800, 0x10000};
  for (u64 at = 0; at < text.size();) {
    const u32 lead = static_cast<unsigned char>(text[at++]);
    const u32 more = lead < 0x80 ? 0 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
    if ((lead >= 0x80 && lead < 0xc0) || lead >= 0xf8 || more > text.size() - at) return false;
    u32 code = more == 0 ? lead : lead & (0x3fu >> more);
    for (u32 k = 0; k < more; ++k) {
      const u32 next = static_cast<unsigned char>(text[at++]);
      if ((next & 0xc0u) != 0x80) return false;
      code = code << 6 | (next & 0x3fu);
    }
    if (code < least[more] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return false;
  }
  return true;
}

std::string problem_of_part(std::string const& part) {
  if (part.empty() || part == "." || part == "..") return "a name must not be empty, . or ..";
  const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (std::ranges::any_of(part, control) || !is_utf8(part)) return "a name is UTF-8 without control characters";
  return {};
}

void encode_file(stored_file const& file, std::span<std::byte> record) {
  field_writer to(record);
  std::array<u8, name_bytes> name{};
  std::copy(file.name.begin(), file.name.end(), name.begin());
  to.put(std::span<u8 const>(name));
  to.put(static_cast<u32>((file.of_folder ? of_folder_flag : 0) | (file.array.fortran ? fortran_flag : 0)));
  to.put(static_cast<u32>(static_cast<unsigned char>(file.array.kind)));
  to.put(file.array.item_bytes);
  to.put(static_cast<u32>(file.array.shape.size()));
  for (u64 k = 0; k < most_dimensions; ++k) to.put(k < file.array.shape.size() ? file.array.shape[k] : u64{0});
  to.put(file.array.data_offset);
  to.put(file.begin);
  to.put(file.bytes);
  to.put(file.file_begin);
  to.put(file.file_bytes);
  to.put(file.sums_begin);
  to.put(file.sums_crc);
}

/// Whether they multiply to it, without overflow.
bool product_is(std::vector<u64> const& factors, u64 expected) {
  if (std::ranges::find(factors, u64{0}) != factors.end()) return expected == 0;
  u64 product = 1;
  for (const u64 each : factors) {
    if (product > ~u64{0} / each) return false;
    product *= each;
  }
  return product == expected;
}

class table_reader {
 public:
  table_reader(geometry const& shape, std::string const& name) : shape_(shape), name_(name) {}

  stored_file read(std::span<std::byte const> record) const {
    field_reader from(record);
    stored_file file;
    std::array<u8, name_bytes> name{};
    from.take(std::span(name));
    const auto end = std::ranges::find(name, 0);
    require(end != name.end() && std::all_of(end, name.end(), [](u8 c) { return c == 0; }), "a name has no end");
    file.name.assign(name.begin(), end);
    const u32 flags = from.take<u32>();
    require((flags & ~(of_folder_flag | fortran_flag)) == 0, "flags of a file are unknown");
    file.of_folder = (flags & of_folder_flag) != 0;
    file.array.fortran = (flags & fortran_flag) != 0;
    const u32 kind = from.take<u32>();
    require(kind < 0x80, "a dtype is unknown");
    file.array.kind = static_cast<char>(kind);
    file.array.item_bytes = from.take<u32>();
    const u32 dimensions = from.take<u32>();
    require(dimensions <= most_dimensions, "an array has too many dimensions");
    for (u64 k = 0; k < most_dimensions; ++k) {
      const u64 size = from.take<u64>();
      if (k < dimensions) file.array.shape.push_back(size);
    }
    file.array.data_offset = from.take<u64>();
    file.begin = from.take<u64>();
    file.bytes = from.take<u64>();
    file.file_begin = from.take<u64>();
    file.file_bytes = from.take<u64>();
    file.sums_begin = from.take<u64>();
    file.sums_crc = from.take<u32>();
    check(file);
    return file;
  }

  void require(bool fine, char const* otherwise) const {
    if (!fine) throw_bad_input("open", name_, std::string("its table of contents is wrong: ") + otherwise + ": make it anew");
  }

 private:
  void check(stored_file const& file) const {
    require(problem_of_file_name(file.name, file.of_folder).empty(), "a file has an impossible name");
    const auto pages = [](u64 number) { return number % page_bytes == 0; };
    require(pages(file.begin) && pages(file.bytes) && pages(file.sums_begin), "an extent is no whole number of pages");
    require(file.begin >= shape_.first() && file.begin <= shape_.end() && file.bytes <= shape_.end() - file.begin,
            "an extent lies outside of the volume");
    require(file.file_begin >= file.begin && file.file_begin <= file.sums_begin && file.sums_begin <= file.end() &&
                file.file_bytes <= file.sums_begin - file.file_begin,
            "a file lies outside of its extent");
    require(file.chunks(shape_) * sizeof(u32) <= file.end() - file.sums_begin, "a file has too few checksums");
    array_layout const& array = file.array;
    if (array.kind == 0) {
      return require(array == array_layout{}, "a file that is no array has a shape");
    }
    require(array.data_offset <= file.file_bytes && array.item_bytes != 0, "an array lies outside of its file");
    std::vector<u64> factors = array.shape;
    factors.push_back(array.item_bytes);
    require(product_is(factors, file.file_bytes - array.data_offset), "an array's shape does not fit its file");
  }

  geometry const& shape_;
  std::string const& name_;
};

/// Calls visit(begin, end) for what no file has, by address, until it says that it is enough.
template <class Visit>
void each_gap(contents const& all, geometry const& shape, Visit const& visit) {
  u64 at = shape.first();
  for (stored_file const& each : all.files) {
    if (each.begin > at && visit(at, each.begin)) return;
    at = each.end();
  }
  if (at < shape.end()) visit(at, shape.end());
}

}  // namespace

std::string problem_of_entry_name(std::string const& name) {
  if (name.find('/') != std::string::npos) return "a name has no slash";
  if (name.find('@') != std::string::npos) return "a name has no @, after which volume:NAME@MEMBER has the members";
  return problem_of_file_name(name, false);
}

std::string problem_of_file_name(std::string const& name, bool of_folder) {
  if (name.size() >= name_bytes) return "a name has at most " + std::to_string(name_bytes - 1) + " bytes";
  if (of_folder != (name.find('/') != std::string::npos)) return "files of folders, and no others, have a slash in their names";
  for (u64 begin = 0; begin <= name.size();) {
    const u64 end = std::min(name.find('/', begin), name.size());
    if (std::string problem = problem_of_part(name.substr(begin, end - begin)); !problem.empty()) return problem;
    begin = end + 1;
  }
  return {};
}

std::vector<std::byte> encode(contents const& all) {
  if (all.files.size() > most_files) {
    throw_bad_input("write", "the table of contents",
                    std::to_string(all.files.size()) + " files: a volume has room for " + std::to_string(most_files) +
                        ": remove some, or make a second volume");
  }
  std::vector<std::byte> bytes(round_up(head_bytes + all.files.size() * record_bytes, page_bytes));
  field_writer head(bytes);
  head.put(table_magic);
  head.put(static_cast<u32>(all.files.size()));
  head.put(static_cast<u32>(record_bytes));
  head.put(std::span<u8 const>(all.id));
  head.put(all.generation);
  u64 at = head_bytes;
  for (stored_file const& each : all.files) {
    encode_file(each, std::span(bytes).subspan(at, record_bytes));
    at += record_bytes;
  }
  return bytes;
}

contents decode_contents(std::span<std::byte const> bytes, geometry const& shape, std::string const& name) {
  const table_reader table(shape, name);
  table.require(bytes.size() >= head_bytes, "it is too short");
  field_reader head(bytes);
  table.require(head.take<u64>() == table_magic, "it is none");
  const u64 count = head.take<u32>();
  table.require(head.take<u32>() == record_bytes && count <= most_files && count * record_bytes <= bytes.size() - head_bytes,
                "it has another number of files than it says");
  contents all;
  head.take(std::span(all.id));
  all.generation = head.take<u64>();
  std::set<std::string> names;
  u64 end = shape.first();
  for (u64 k = 0; k < count; ++k) {
    stored_file file = table.read(bytes.subspan(head_bytes + k * record_bytes, record_bytes));
    table.require(file.begin >= end, "two files overlap");
    table.require(names.insert(file.name).second, "two files have one name");
    end = file.end();
    all.files.push_back(std::move(file));
  }
  return all;
}

u64 find_room(contents const& all, geometry const& shape, u64 bytes) {
  u64 found = 0;
  each_gap(all, shape, [&](u64 begin, u64 end) {
    if (end - begin < bytes) return false;
    found = begin;
    return true;
  });
  return found;
}

u64 free_bytes(contents const& all, geometry const& shape) {
  u64 sum = 0;
  each_gap(all, shape, [&](u64 begin, u64 end) {
    sum += end - begin;
    return false;
  });
  return sum;
}

}  // namespace penstock::volumes
